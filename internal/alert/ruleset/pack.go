package ruleset

import (
	"embed"
	"io/fs"
	"sync"
)

//go:embed pack/*.yaml
var packFiles embed.FS

// PackFiles are the files of the starter pack, with its tests.
func PackFiles() fs.FS {
	sub, err := fs.Sub(packFiles, "pack")
	if err != nil {
		panic(err) // the directory is embedded
	}
	return sub
}

var pack = sync.OnceValue(func() *Set {
	files, err := packNames()
	if err != nil {
		panic(err)
	}
	set, err := LoadFS(PackFiles(), files...)
	if err != nil {
		panic(err) // a test loads it
	}
	return set
})

func packNames() ([]string, error) {
	entries, err := fs.ReadDir(PackFiles(), ".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if isRuleFile(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Pack returns the starter pack: rules that make sense on each node.
func Pack() *Set { return pack() }
