package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// NoSocket as the path of a socket means that there is none.
const NoSocket = "none"

// SocketPath is where a socket is served: as configured, or by default in a directory. Empty: it is not.
func SocketPath(configured, directory, name string) string {
	switch configured {
	case NoSocket:
		return ""
	case "":
		return filepath.Join(directory, name)
	}
	return configured
}

// Decode reads a config file into a config, over what it has: what the file does not name stays.
// A field that does not exist, is named twice or has the wrong type is an error with its line. The
// command lists the fields that there are.
func Decode(path string, data []byte, command string, into any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return undecodable(path, command, err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return fmt.Errorf("config: %s: holds more than one document; a config file is one", path)
	}
	return nil
}

// LoadFile reads a config file.
func LoadFile[C any](path string, load func(path string, data []byte) (C, error)) (C, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		var none C
		return none, fmt.Errorf("config: %w", err)
	}
	return load(path, data)
}

// CheckKind returns an error unless a file is of the version and kind that are wanted.
func CheckKind(path, version, kind, wantVersion, wantKind string) error {
	if version != wantVersion || kind != wantKind {
		return fmt.Errorf("config: %s: is apiVersion %q, kind %q; want apiVersion: %s, kind: %s", path, version, kind, wantVersion, wantKind)
	}
	return nil
}

// ResolvePaths makes relative paths start from the directory of the file that they stand in: they must
// not depend on where statusd is started.
func ResolvePaths(file string, paths ...*string) {
	for _, path := range paths {
		if *path != "" && *path != NoSocket && !filepath.IsAbs(*path) {
			*path = filepath.Join(filepath.Dir(file), *path)
		}
	}
}

// undecodable makes of the decoder's words an error with a line for each problem:
// file:line: problem.
func undecodable(path, command string, err error) error {
	typed, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return fmt.Errorf("config: %s: %w", path, err)
	}
	problems := make([]error, len(typed.Errors))
	for i, problem := range typed.Errors {
		line, what, _ := strings.Cut(strings.TrimPrefix(problem, "line "), ": ")
		if field, ok := unknownField(what); ok {
			what = fmt.Sprintf("unknown field %q; %s lists those there are", field, command)
		}
		problems[i] = fmt.Errorf("config: %s:%s: %s", path, line, what)
	}
	return errors.Join(problems...)
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
