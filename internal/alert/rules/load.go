package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

const (
	// maxFile is how large a file may be, maxRules how many rules there may be in all.
	maxFile  = 1 << 20
	maxRules = 1000
)

// Load reads files of rules. A directory stands for its files that end in .yaml or .yml and not in
// _test.yaml. The error has every mistake of all files as [Mistakes].
func Load(paths ...string) (*Set, error) {
	files, err := expand(paths)
	if err != nil {
		return nil, err
	}
	return load(files, readBounded)
}

// readBounded reads a file, and of one that is too large only so much that it is known to be: a device has no end.
func readBounded(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxFile+1))
}

// LoadFS is [Load] from the files of a file system.
func LoadFS(fsys fs.FS, files ...string) (*Set, error) {
	return load(files, func(name string) ([]byte, error) { return fs.ReadFile(fsys, name) })
}

// Parse is [Load] of one file that was already read.
func Parse(file string, data []byte) (*Set, error) {
	return load([]string{file}, func(string) ([]byte, error) { return data, nil })
}

// expand replaces directories by their files.
func expand(paths []string) ([]string, error) {
	var files []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("rules: %w", err)
		}
		if !info.IsDir() {
			files = append(files, p)
			continue
		}
		entries, err := os.ReadDir(p) // sorted
		if err != nil {
			return nil, fmt.Errorf("rules: %w", err)
		}
		for _, e := range entries {
			path := filepath.Join(p, e.Name())
			if isRuleFile(e.Name()) && !isSpecial(path) {
				files = append(files, path)
			}
		}
	}
	return files, nil
}

// isSpecial reports whether a path is a directory, or a pipe, socket or device, of which a look into a directory must not
// wait for another process. One that cannot be looked at is none: reading it says why.
func isSpecial(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular()
}

func isRuleFile(name string) bool {
	extension := path.Ext(name)
	return (extension == ".yaml" || extension == ".yml") && !strings.HasSuffix(strings.TrimSuffix(name, extension), "_test") && !strings.HasPrefix(name, ".")
}

func load(files []string, readFile func(string) ([]byte, error)) (*Set, error) {
	c, err := newCompiler()
	if err != nil {
		return nil, err
	}
	l := &loader{compiler: c, names: map[string]string{}}
	for _, file := range files {
		data, err := readFile(file)
		switch {
		case err != nil:
			l.mistakes = append(l.mistakes, Mistake{File: file, Message: err.Error()})
		case len(data) > maxFile:
			l.mistakes = append(l.mistakes, Mistake{File: file, Message: fmt.Sprintf("the file has more than %d bytes", maxFile)})
		default:
			l.file(file, data)
		}
	}
	if len(l.mistakes) > 0 {
		l.mistakes.sort()
		return nil, l.mistakes
	}
	return &Set{rules: l.rules}, nil
}

// loader collects the rules and the mistakes of files.
type loader struct {
	*compiler
	doc      *document
	rules    []*Rule
	names    map[string]string // where a rule of a name stands
	mistakes Mistakes
}

func (l *loader) mistake(n *yaml.Node, format string, args ...any) {
	l.mistakes = append(l.mistakes, Mistake{File: l.doc.file, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)})
}

// inside is a mistake at an offset of a scalar.
func (l *loader) inside(n *yaml.Node, offset int, message string) {
	line, column := l.doc.at(n, offset)
	l.mistakes = append(l.mistakes, Mistake{File: l.doc.file, Line: line, Column: column, Message: message})
}

// documents decodes the documents of a file and calls a function for each.
func (l *loader) documents(file string, data []byte, each func(*yaml.Node)) {
	l.doc = newDocument(file, data)
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			line, message := yamlError(err)
			column := 1
			if l, c, ok := unreadable(data); ok { // the decoder does not know where
				line, column = l, c
			}
			l.mistakes = append(l.mistakes, Mistake{File: file, Line: line, Column: column, Message: message})
			return
		}
		if len(n.Content) != 1 || n.Content[0].Tag == "!!null" { // what stands between two separators, or after the last
			continue
		}
		if l.plain(n.Content[0], 0) {
			each(n.Content[0])
		}
	}
}

// yamlError takes the line out of an error of the decoder.
func yamlError(err error) (line int, message string) {
	message = strings.TrimPrefix(err.Error(), "yaml: ")
	if n, scanErr := fmt.Sscanf(message, "line %d:", &line); n == 1 && scanErr == nil {
		_, message, _ = strings.Cut(message, ": ")
	}
	return max(line, 1), message
}

// plain reports whether there are no anchors and aliases, with which a small file becomes a large one,
// and no deep nesting.
func (l *loader) plain(n *yaml.Node, depth int) bool {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		l.mistake(n, "anchors and aliases are not supported")
		return false
	}
	if depth > 16 {
		l.mistake(n, "nested too deep")
		return false
	}
	for _, child := range n.Content {
		if !l.plain(child, depth+1) {
			return false
		}
	}
	return true
}

func (l *loader) file(file string, data []byte) {
	l.notEmpty(Kind+", groups", file, data, func(n *yaml.Node) {
		l.fields(n, "the file", []key{
			{"apiVersion", true, l.constant(APIVersion)},
			{"kind", true, l.constant(Kind)},
			{"groups", true, l.each(l.group)},
		})
	})
}

// notEmpty calls a function for each document of a file, of which there must be one.
func (l *loader) notEmpty(want, file string, data []byte, each func(*yaml.Node)) {
	found, before := false, len(l.mistakes)
	l.documents(file, data, func(n *yaml.Node) {
		found = true
		each(n)
	})
	if !found && len(l.mistakes) == before {
		l.mistakes = append(l.mistakes, Mistake{File: file, Line: 1, Column: 1, Message: "the file is empty; want apiVersion: " + APIVersion + ", kind: " + want})
	}
}

// key is a key of a mapping.
type key struct {
	name     string
	required bool
	take     func(*yaml.Node)
}

// fields reads a mapping strictly.
func (l *loader) fields(n *yaml.Node, what string, keys []key) {
	if n.Kind != yaml.MappingNode {
		l.mistake(n, "%s is %s, want a mapping with %s", what, kindOf(n), strings.Join(keyNames(keys), ", "))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		at := slices.IndexFunc(keys, func(k key) bool { return k.name == name.Value })
		switch {
		case at < 0:
			l.mistake(name, "%s has no field %s%s; it has %s", what, bounded(name.Value, 64), meant(name.Value, keyNames(keys)), strings.Join(keyNames(keys), ", "))
		case seen[name.Value]:
			l.mistake(name, "%s is there twice", name.Value)
		default:
			seen[name.Value] = true
			keys[at].take(value)
		}
	}
	for _, k := range keys {
		if k.required && !seen[k.name] {
			l.mistake(n, "%s has no %s", what, k.name)
		}
	}
}

func keyNames(keys []key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return names
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if n.Tag == "!!null" {
		return "empty"
	}
	return fmt.Sprintf("%q", bounded(n.Value, 64))
}

func (l *loader) constant(want string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Value != want {
			l.mistake(n, "is %s, want %s", kindOf(n), want)
		}
	}
}

// each takes the items of a list.
func (l *loader) each(take func(*yaml.Node)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.SequenceNode {
			l.mistake(n, "is %s, want a list", kindOf(n))
			return
		}
		for _, item := range n.Content {
			take(item)
		}
	}
}

// text takes a text.
func (l *loader) text(into *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			l.mistake(n, "is %s, want a text", kindOf(n))
			return
		}
		*into = n.Value
	}
}
