package rulefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v3"

	"github.com/statusd/statusd/internal/text"
)

// MaxBytes is how large a file may be.
const MaxBytes = 1 << 20

// APIVersion is the apiVersion of files of rules and of their tests.
const APIVersion = "statusd/v1alpha1"

// Reader reads the documents of files and collects every mistake in them. The zero value is ready; one goroutine uses it.
type Reader struct {
	Mistakes Mistakes
	doc      *document
}

// File is the name of the file that is read.
func (r *Reader) File() string { return r.doc.file }

// Mistake records a mistake at a node.
func (r *Reader) Mistake(n *yaml.Node, format string, args ...any) {
	r.Mistakes = append(r.Mistakes, Mistake{File: r.doc.file, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)})
}

// Inside notes a mistake at an offset of a scalar.
func (r *Reader) Inside(n *yaml.Node, offset int, message string) {
	line, column := r.doc.at(n, offset)
	r.Mistakes = append(r.Mistakes, Mistake{File: r.doc.file, Line: line, Column: column, Message: message})
}

// documents decodes the documents of a file and calls a function for each.
func (r *Reader) documents(file string, data []byte, each func(*yaml.Node)) {
	r.doc = newDocument(file, data)
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
			r.Mistakes = append(r.Mistakes, Mistake{File: file, Line: line, Column: column, Message: message})
			return
		}
		if len(n.Content) != 1 || n.Content[0].Tag == "!!null" { // what stands between two separators, or after the last
			continue
		}
		if r.plain(n.Content[0], 0) {
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
func (r *Reader) plain(n *yaml.Node, depth int) bool {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		r.Mistake(n, "anchors and aliases are not supported")
		return false
	}
	if depth > 16 {
		r.Mistake(n, "nested too deep")
		return false
	}
	for _, child := range n.Content {
		if !r.plain(child, depth+1) {
			return false
		}
	}
	return true
}

// NotEmpty calls each for every document of a file, and reports a problem if the file has no
// document.
func (r *Reader) NotEmpty(want, file string, data []byte, each func(*yaml.Node)) {
	found, before := false, len(r.Mistakes)
	r.documents(file, data, func(n *yaml.Node) {
		found = true
		each(n)
	})
	if !found && len(r.Mistakes) == before {
		r.Mistakes = append(r.Mistakes, Mistake{File: file, Line: 1, Column: 1, Message: "the file is empty; want apiVersion: " + APIVersion + ", kind: " + want})
	}
}

// Key is a key of a mapping with the reader of its value.
type Key struct {
	name     string
	required bool
	take     func(*yaml.Node)
}

// Required is a key that must be there.
func Required(name string, take func(*yaml.Node)) Key { return Key{name, true, take} }

// Optional is a key that may be missing.
func Optional(name string, take func(*yaml.Node)) Key { return Key{name, false, take} }

// Fields reads a mapping strictly.
func (r *Reader) Fields(n *yaml.Node, what string, keys []Key) {
	if n.Kind != yaml.MappingNode {
		r.Mistake(n, "%s is %s, want a mapping with %s", what, KindOf(n), strings.Join(keyNames(keys), ", "))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		at := slices.IndexFunc(keys, func(k Key) bool { return k.name == name.Value })
		switch {
		case at < 0:
			r.Mistake(name, "%s has no field %s%s; it has %s", what, text.Cut(name.Value, 64), text.DidYouMean(name.Value, keyNames(keys)), strings.Join(keyNames(keys), ", "))
		case seen[name.Value]:
			r.Mistake(name, "%s is there twice", name.Value)
		default:
			seen[name.Value] = true
			keys[at].take(value)
		}
	}
	for _, k := range keys {
		if k.required && !seen[k.name] {
			r.Mistake(n, "%s has no %s", what, k.name)
		}
	}
}

func keyNames(keys []Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return names
}

func KindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if n.Tag == "!!null" {
		return "empty"
	}
	return fmt.Sprintf("%q", text.Cut(n.Value, 64))
}

func (r *Reader) Constant(want string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Value != want {
			r.Mistake(n, "is %s, want %s", KindOf(n), want)
		}
	}
}

// Each takes the items of a list.
func (r *Reader) Each(take func(*yaml.Node)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.SequenceNode {
			r.Mistake(n, "is %s, want a list", KindOf(n))
			return
		}
		for _, item := range n.Content {
			take(item)
		}
	}
}

// Text takes a text.
func (r *Reader) Text(into *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			r.Mistake(n, "is %s, want a text", KindOf(n))
			return
		}
		*into = n.Value
	}
}
func (r *Reader) Choice(n *yaml.Node, into *string, known ...string) {
	if n.Kind != yaml.ScalarNode || !slices.Contains(known, n.Value) {
		r.Mistake(n, "is %s%s, want %s", KindOf(n), text.DidYouMean(n.Value, known), strings.Join(known, ", "))
		return
	}
	*into = n.Value
}

func (r *Reader) Duration(into *time.Duration) func(*yaml.Node) {
	return func(n *yaml.Node) {
		d, err := ParseDuration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			r.Mistake(n, "is %s, want a duration such as 30s, 5m, 1h30m or 2d", KindOf(n))
			return
		}
		*into = d
	}
}
