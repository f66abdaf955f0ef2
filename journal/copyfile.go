package journal

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
)

// The verified copy is one flat file under one checksum, so that no part of it is trusted:
//
//	"SDJCOPY1" | count, 4 bytes | count entries | SHA-256 of all before
//
// An entry is bucket, key and record, each after its length in 4 bytes, big-endian. The
// root record is an entry like the others.
const copyMagic = "SDJCOPY1"

func encodeCopy(img image) []byte {
	entries := maps.Clone(img.records)
	entries[rootRecord] = img.root.seal()
	keys := slices.SortedFunc(maps.Keys(entries), func(a, b recordKey) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.key, b.key))
	})
	data := binary.BigEndian.AppendUint32([]byte(copyMagic), uint32(len(keys)))
	for _, k := range keys {
		for _, part := range [][]byte{[]byte(k.kind), []byte(k.key), entries[k]} {
			data = binary.BigEndian.AppendUint32(data, uint32(len(part)))
			data = append(data, part...)
		}
	}
	sum := sha256.Sum256(data)
	return append(data, sum[:]...)
}

// decodeCopy returns the records, the values as parts of data. The error wraps ErrDamaged.
func decodeCopy(data []byte) (map[recordKey][]byte, error) {
	if len(data) < len(copyMagic)+4+sha256.Size {
		return nil, damaged("the copy is cut short")
	}
	body, sum := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	if got := sha256.Sum256(body); !bytes.Equal(got[:], sum) {
		return nil, damaged("the copy has a wrong checksum")
	}
	rest, ok := bytes.CutPrefix(body, []byte(copyMagic))
	if !ok {
		return nil, damaged("the file is not a copy of a journal")
	}
	count, rest := binary.BigEndian.Uint32(rest), rest[4:]
	entries := map[recordKey][]byte{}
	for range count {
		var parts [3][]byte
		for i := range parts {
			if len(rest) < 4 || uint64(len(rest)-4) < uint64(binary.BigEndian.Uint32(rest)) {
				return nil, damaged("an entry of the copy is cut short")
			}
			end := 4 + binary.BigEndian.Uint32(rest)
			parts[i], rest = rest[4:end], rest[end:]
		}
		entries[recordKey{kind(parts[0]), string(parts[1])}] = parts[2]
	}
	if len(rest) != 0 {
		return nil, damaged("the copy has %d bytes too many", len(rest))
	}
	return entries, nil
}
