package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	lines "github.com/statusd/statusd/internal/text"
)

// Options describe the config file of a process.
type Options struct {
	// Text is the commented default file.
	Text string
	// Command prints Text, for error messages.
	Command string
	// APIVersion and Kind must be the first fields of each file.
	APIVersion, Kind string
	// Former has the paths of former settings, with their replacements.
	Former map[string]string
}

// A File is the default config file of a process whose config is of type C.
type File[C any] struct {
	options  Options
	settings []setting
}

// A setting is one field of the file.
type setting struct {
	path string // as in log.format
	flag string // empty if it has none: flags are for what differs from start to start
	doc  string // lines
}

// New reads a default file. New panics if the file and C do not have the same fields, or if a
// field has no comment: both are constants of the program.
func New[C any](options Options) *File[C] {
	f := &File[C]{options: options}
	root := mapping([]byte(options.Text))
	if root == nil {
		panic("configfile: " + options.Kind + ": the default file is not a YAML mapping")
	}
	f.collect(root, reflect.TypeFor[C](), "")
	var paths []string
	for _, s := range f.settings {
		paths = append(paths, s.path)
		if s.doc == "" && s.path != "kind" {
			panic(fmt.Sprintf("configfile: %s: %s has no comment", options.Kind, s.path))
		}
	}
	slices.Sort(paths)
	if want := slices.Sorted(slices.Values(leaves(reflect.TypeFor[C](), ""))); !slices.Equal(paths, want) {
		panic(fmt.Sprintf("configfile: %s: the default file has\n%v\nwant the fields of %v:\n%v", options.Kind, paths, reflect.TypeFor[C](), want))
	}
	f.Default()
	return f
}

// mapping is the top of a file, nil if it is not one mapping.
func mapping(text []byte) *yaml.Node {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil || len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	return document.Content[0]
}

// collect appends the settings of a mapping that decodes into a struct of type t.
func (f *File[C]) collect(node *yaml.Node, t reflect.Type, prefix string) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		path := prefix + key.Value
		if section, ok := fieldType(t, key.Value); ok && section.Kind() == reflect.Struct {
			f.collect(value, section, path+".")
			continue
		}
		s := setting{path: path}
		var doc []string
		for line := range strings.SplitSeq(key.HeadComment, "\n") {
			line = strings.TrimPrefix(strings.TrimPrefix(line, "#"), " ")
			if flag, ok := strings.CutPrefix(line, "Flag: --"); ok {
				s.flag = flag
			} else if line != "" {
				doc = append(doc, line)
			}
		}
		s.doc = strings.Join(doc, "\n")
		f.settings = append(f.settings, s)
	}
}

// Default returns the config of a process without a config file and flags.
func (f *File[C]) Default() C {
	var c C
	if err := f.decode("default", []byte(f.options.Text), &c); err != nil {
		panic(fmt.Sprintf("configfile: %s: %v", f.options.Kind, err))
	}
	return c
}

// Load decodes a file over the defaults: fields that the file does not name keep their defaults. A field that
// does not exist, occurs twice or has the wrong type is an error with its line; so is another version or
// kind. A former name is an error that names its replacement.
func (f *File[C]) Load(path string, data []byte) (C, error) {
	c := f.Default()
	if err := f.decode(path, data, &c); err != nil {
		return *new(C), err
	}
	var kind struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
	}
	if err := yaml.Unmarshal(data, &kind); err != nil {
		return *new(C), fmt.Errorf("config: %s: %w", path, err)
	}
	if kind.APIVersion != f.options.APIVersion || kind.Kind != f.options.Kind {
		return *new(C), fmt.Errorf("config: %s: is apiVersion %q, kind %q; want apiVersion: %s, kind: %s",
			path, kind.APIVersion, kind.Kind, f.options.APIVersion, f.options.Kind)
	}
	return c, nil
}

func (f *File[C]) decode(path string, data []byte, into *C) error {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return f.undecodable(path, data, err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return fmt.Errorf("config: %s: has more than one YAML document; want one", path)
	}
	return nil
}

// undecodable makes of the decoder's words an error with a line for each problem: file:line: problem.
func (f *File[C]) undecodable(path string, data []byte, err error) error {
	typed, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return fmt.Errorf("config: %s: %w", path, err)
	}
	keys := map[string]string{} // the path of a key, by its line and name
	if root := mapping(data); root != nil {
		paths(root, "", keys)
	}
	problems := make([]error, len(typed.Errors))
	for i, problem := range typed.Errors {
		line, what, _ := strings.Cut(strings.TrimPrefix(problem, "line "), ": ")
		if name, ok := unknownField(what); ok {
			what = f.unknown(name, keys[line+" "+name])
		} else {
			what = wrongType(what)
		}
		problems[i] = fmt.Errorf("config: %s:%s: %s", path, line, what)
	}
	return errors.Join(problems...)
}

// unknown describes a field that does not exist.
func (f *File[C]) unknown(name, path string) string {
	if instead, ok := f.options.Former[path]; ok {
		return fmt.Sprintf("%s is no longer a setting: %s", path, instead)
	}
	return fmt.Sprintf("unknown field %q%s; %s lists all fields", name, lines.DidYouMean(name, siblings(reflect.TypeFor[C](), strings.TrimSuffix(path, name))), f.options.Command)
}

var (
	unmarshal = regexp.MustCompile("^cannot unmarshal !!(\\w+) (?:`(.*)` )?into (\\S+)$")
	wanted    = map[string]string{"time.Duration": "a duration such as 1m30s", "int": "a number", "int32": "a number", "int64": "a number", "float64": "a number", "bool": "true or false", "string": "a text"}
	kinds     = map[string]string{"seq": "a list", "map": "a mapping"}
)

// wrongType words the problem of a value that does not have the type of its field.
func wrongType(problem string) string {
	m := unmarshal.FindStringSubmatch(problem)
	if m == nil {
		return problem
	}
	want, known := wanted[m[3]]
	if strings.HasPrefix(m[3], "[]") {
		want, known = "a list", true
	}
	switch kind := kinds[m[1]]; {
	case !known:
		return problem
	case kind != "":
		return "got " + kind + ", want " + want
	}
	return fmt.Sprintf("got %q, want %s", m[2], want)
}

// paths collects the path of each key of a mapping by the number of its line and its name.
func paths(node *yaml.Node, prefix string, into map[string]string) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		into[fmt.Sprint(key.Line, " ", key.Value)] = prefix + key.Value
		if value.Kind == yaml.MappingNode {
			paths(value, prefix+key.Value+".", into)
		}
	}
}

// unknownField finds the name in the decoder's "field NAME not found in type TYPE".
func unknownField(problem string) (string, bool) {
	rest, ok := strings.CutPrefix(problem, "field ")
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, " not found in type ")
	return name, ok
}
