package rules

import "io/fs"

// Load reads files of rules. A directory stands for its files that end in .yaml or .yml and not in
// _test.yaml. The error has every mistake of all files; see [Mistakes].
func Load(paths ...string) (*Set, error) { return &Set{}, nil }

// LoadFS is [Load] from a file system.
func LoadFS(fsys fs.FS, paths ...string) (*Set, error) { return &Set{}, nil }

// Pack returns the starter pack.
func Pack() *Set { return &Set{} }

type program struct{}
