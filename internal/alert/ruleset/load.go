package ruleset

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/statusd/statusd/internal/alert/expr"
	"github.com/statusd/statusd/internal/alert/rulefile"
)

// maxRules is how many rules there may be in all.
const maxRules = 1000

// Load reads files of rules. A directory stands for its files that end in .yaml or .yml and not in
// _test.yaml. The error has every mistake of all files as [rulefile.Mistakes].
func Load(paths ...string) (*Set, error) {
	files, err := expand(paths)
	if err != nil {
		return nil, err
	}
	return load(files, readBounded)
}

// readBounded reads a file up to just above the maximum size, enough to detect a larger file: a device has no end.
func readBounded(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, rulefile.MaxBytes+1))
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

// isSpecial reports whether a path is a directory, pipe, socket or device; reading a pipe could block on another process.
// A path that cannot be examined is not special: reading it returns the error.
func isSpecial(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular()
}

func isRuleFile(name string) bool {
	extension := path.Ext(name)
	return (extension == ".yaml" || extension == ".yml") && !strings.HasSuffix(strings.TrimSuffix(name, extension), "_test") && !strings.HasPrefix(name, ".")
}

func load(files []string, readFile func(string) ([]byte, error)) (*Set, error) {
	c, err := expr.NewCompiler()
	if err != nil {
		return nil, err
	}
	l := &loader{Compiler: c, names: map[string]string{}}
	for _, file := range files {
		data, err := readFile(file)
		switch {
		case err != nil:
			l.Mistakes = append(l.Mistakes, rulefile.Mistake{File: file, Message: err.Error()})
		case len(data) > rulefile.MaxBytes:
			l.Mistakes = append(l.Mistakes, rulefile.Mistake{File: file, Message: fmt.Sprintf("the file has more than %d bytes", rulefile.MaxBytes)})
		default:
			l.file(file, data)
		}
	}
	if len(l.Mistakes) > 0 {
		l.Mistakes.Sort()
		return nil, l.Mistakes
	}
	return &Set{rules: l.rules}, nil
}

// loader collects the rules and the mistakes of files.
type loader struct {
	rulefile.Reader
	*expr.Compiler
	rules []*Rule
	names map[string]string // where a rule of a name stands
}

func (l *loader) file(file string, data []byte) {
	l.NotEmpty(Kind+", groups", file, data, func(n *yaml.Node) {
		if rule := ofPrometheus(n); rule != nil {
			l.Mistake(rule, "this looks like a file of Prometheus rules, whose expressions are PromQL; a file of statusd has apiVersion: %s, kind: %s, and rules with a name and an expression in CEL", rulefile.APIVersion, Kind)
			return
		}
		l.Fields(n, "the file", []rulefile.Key{
			rulefile.Required("apiVersion", l.Constant(rulefile.APIVersion)),
			rulefile.Required("kind", l.Constant(Kind)),
			rulefile.Required("groups", l.Each(l.group)),
		})
	})
}

// ofPrometheus returns the first Prometheus rule of a file (alert or record), or nil if the file has none or declares itself a statusd
// file.
func ofPrometheus(n *yaml.Node) *yaml.Node {
	if valueOf(n, "apiVersion") != nil && valueOf(n, "apiVersion").Value == rulefile.APIVersion {
		return nil
	}
	groups := valueOf(n, "groups")
	if groups == nil {
		groups = valueOf(valueOf(n, "spec"), "groups") // of a PrometheusRule
	}
	for _, group := range items(groups) {
		for _, rule := range items(valueOf(group, "rules")) {
			if valueOf(rule, "alert") != nil || valueOf(rule, "record") != nil {
				return rule
			}
		}
	}
	return nil
}

func valueOf(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func items(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}
