package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ErrDamaged is returned for a record that differs from the record written.
var ErrDamaged = errors.New("damaged")

// ErrNewerFormat is returned for a record in the format of a newer release.
var ErrNewerFormat = errors.New("written by a newer statusd")

// version is the format of all records.
const version = "v1"

// A sealed record is one JSON object that begins with its format and its checksum:
//
//	{"format":"statusd.exit/v1","crc32c":"0123abcd","exitCode":3,…}
//
// The checksum covers the format and everything after the checksum. The format contains the name of
// the file, so that one record cannot stand for another. Older releases without sealed records can
// read sealed records, since they ignore unknown fields, and their unsealed records are accepted if
// they are complete: see unsealed.
const (
	formatStart = `{"format":"statusd.`
	sumStart    = `","crc32c":"`
	sumDigits   = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func formatOf(name string) string { return strings.TrimSuffix(name, ".json") + "/" + version }

// seal returns the content of the file of that name.
func seal(name string, value any) ([]byte, error) {
	object, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if len(object) < 2 || object[0] != '{' {
		return nil, fmt.Errorf("%T is not an object", value)
	}
	rest := append([]byte(`",`), object[1:]...)
	if object[1] == '}' {
		rest = []byte(`"}`)
	}
	format := formatOf(name)
	return append([]byte(formatStart+format+sumStart+hex8(checksum(format, rest))), rest...), nil
}

func checksum(format string, rest []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(format), castagnoli), castagnoli, rest)
}

func hex8(sum uint32) string { return fmt.Sprintf("%0*x", sumDigits, sum) }

// Read fills value from a file. A missing file is fs.ErrNotExist; a damaged file is ErrDamaged.
func Read(path string, value any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := unseal(filepath.Base(path), data, value); err != nil {
		return fmt.Errorf("record %s is %w", path, err)
	}
	return nil
}

func unseal(name string, data []byte, value any) error {
	sealed, ok := bytes.CutPrefix(data, []byte(formatStart))
	if !ok {
		return unsealed(data, value)
	}
	format, rest, ok := bytes.Cut(sealed, []byte(sumStart))
	if !ok || len(rest) < sumDigits {
		return fmt.Errorf("%w: it has no checksum", ErrDamaged)
	}
	sum, rest := rest[:sumDigits], rest[sumDigits:]
	// As text: the digits have one spelling only.
	if want := hex8(checksum(string(format), rest)); string(sum) != want {
		return fmt.Errorf("%w: the checksum is %q, want %q", ErrDamaged, sum, want)
	}
	if string(format) != formatOf(name) {
		return fmt.Errorf("%w: format %q, want %q", ErrNewerFormat, format, formatOf(name))
	}
	if err := json.Unmarshal(data, value); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// complete is implemented by records that an earlier release wrote without a checksum.
type complete interface{ Complete() bool }

// unsealed reads a record of a release that did not seal them. unsealed takes nothing that such
// a release would not have written: no unknown field, and none of the needed ones empty.
// A sealed record whose beginning is damaged has unknown fields.
func unsealed(data []byte, value any) error {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return fmt.Errorf("%w: it is not an object", ErrDamaged) // null would leave value as it is
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(value); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows the record", ErrDamaged)
	}
	if c, ok := value.(complete); ok && !c.Complete() {
		return fmt.Errorf("%w: it is not complete", ErrDamaged)
	}
	return nil
}

// Complete reports whether all required fields are set.
func (s *Spec) Complete() bool { return s.ID != "" && s.Name != "" && len(s.Command) > 0 }

// Complete reports whether all required fields are set.
func (s *Started) Complete() bool { return s.Main.PID > 0 && !s.At.IsZero() }

// Complete reports whether all required fields are set.
func (e *Exit) Complete() bool { return e.Reason != "" && !e.FinishedAt.IsZero() }
