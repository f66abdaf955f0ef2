// Package linelog has the lines of append-only text files: a checksum, a space and a JSON object. A damaged line costs itself, and a
// person can read the file.
package linelog

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
)

// ErrDamaged is the error of a line with a wrong checksum.
var ErrDamaged = errors.New("damaged line")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Append adds a value as a line to a buffer. Append returns an error if the value cannot be encoded as
// JSON.
func Append(to []byte, value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return to, err
	}
	to = fmt.Appendf(to, "%08x ", crc32.Checksum(data, castagnoli))
	return append(append(to, data...), '\n'), nil
}

// Parse reads a line without its end. The error is ErrDamaged.
func Parse(text []byte, into any) error {
	sum, data, ok := bytes.Cut(text, []byte(" "))
	var want [4]byte
	if !ok || len(sum) != 2*len(want) {
		return ErrDamaged
	}
	if _, err := hex.Decode(want[:], sum); err != nil {
		return ErrDamaged
	}
	if uint32(want[0])<<24|uint32(want[1])<<16|uint32(want[2])<<8|uint32(want[3]) != crc32.Checksum(data, castagnoli) || json.Unmarshal(data, into) != nil {
		return ErrDamaged
	}
	return nil
}

// SyncDir makes created, renamed and removed entries of a directory durable.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
