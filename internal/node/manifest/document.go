package manifest

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A document is one YAML or JSON document of a file, with the positions of its fields.
type document struct {
	text []byte
	line int        // of its first line in the file, counted from 1
	root *yaml.Node // of its content; nil if the syntax is bad
}

// split cuts a file at its "---" lines. Documents without content are left out.
func split(data []byte) []document {
	var documents []document
	current := document{line: 1}
	flush := func() {
		if hasContent(current.text) {
			documents = append(documents, current)
		}
	}
	line := 0
	for text := range bytes.Lines(data) {
		line++
		if isSeparator(text) {
			flush()
			current = document{line: line}
		}
		current.text = append(current.text, text...)
	}
	flush()
	return documents
}

func isSeparator(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(bytes.TrimSpace(rest)) == 0 || rest[0] == ' ' || rest[0] == '\t')
}

// hasContent reports whether there is more than separators and comments.
func hasContent(text []byte) bool {
	for line := range bytes.Lines(text) {
		if isSeparator(line) {
			line = line[len("---"):]
		}
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("...")) {
			return true
		}
	}
	return false
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

// parse reads the document's structure. The problems it returns have no file yet.
func (d *document) parse() []Problem {
	var node yaml.Node
	if err := yaml.Unmarshal(d.text, &node); err != nil {
		reason, line := err.Error(), 1
		if m := yamlLine.FindStringSubmatch(reason); m != nil {
			line, _ = strconv.Atoi(m[1]) // the expression matches digits only
			reason = strings.TrimPrefix(reason, m[0])
		}
		return []Problem{{Line: d.line + line - 1, Reason: "not valid YAML or JSON: " + strings.TrimPrefix(reason, "yaml: ")}}
	}
	d.root = &node
	if node.Kind == yaml.DocumentNode {
		d.root = node.Content[0]
	}
	return d.duplicates(d.root, "")
}

// duplicates finds keys that are given twice. YAML forbids them, and of two values
// neither is known to be meant.
func (d *document) duplicates(node *yaml.Node, path string) []Problem {
	var problems []Problem
	switch node.Kind {
	case yaml.MappingNode:
		first := map[string]int{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			field := join(path, key.Value)
			if line, ok := first[key.Value]; ok {
				problems = append(problems, Problem{Line: d.fileLine(key), Field: field,
					Reason: "duplicate field, given before on line " + strconv.Itoa(line)})
				continue
			}
			first[key.Value] = d.fileLine(key)
			problems = append(problems, d.duplicates(value, field)...)
		}
	case yaml.SequenceNode:
		for i, item := range node.Content {
			problems = append(problems, d.duplicates(item, path+"["+strconv.Itoa(i)+"]")...)
		}
	}
	return problems
}

func (d *document) fileLine(node *yaml.Node) int { return d.line + node.Line - 1 }

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// lineOf returns the line of a field, or of the nearest field around it.
func (d *document) lineOf(path string) int { return d.fileLine(find(d.root, d.root, path)) }

// find follows a path like spec.containers[0].image or metadata.labels[a.b/c] down from
// node. find returns nearest if the path leads no further.
func find(node, nearest *yaml.Node, path string) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	path = strings.TrimPrefix(path, ".")
	if path == "" {
		return nearest
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			if rest, ok := cutKey(path, key.Value); ok {
				return find(value, key, rest)
			}
		}
	case yaml.SequenceNode:
		for i, item := range node.Content {
			if rest, ok := strings.CutPrefix(path, "["+strconv.Itoa(i)+"]"); ok {
				return find(item, item, rest)
			}
		}
	}
	return nearest
}

// cutKey takes key, bare or in brackets, off the front of a path.
func cutKey(path, key string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(path, "["+key+"]"); ok {
		return rest, true
	}
	rest, ok = strings.CutPrefix(path, key)
	return rest, ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
