package journal

import (
	"bytes"
	"fmt"
)

// A file of the journal is a snapshot, the commits that followed it, and a reserve of
// zeros. A commit is written into the reserve, which was synced before, so that no commit
// changes the size of the file. Hence the end of the file distinguishes an unfinished
// commit from damage:
//
//   - A commit that a crash interrupted left whole sectors of zeros, since a disk writes a
//     sector in whole or not at all, and an entry has no sector of zeros of its own.
//   - An entry that is complete and has a wrong checksum was damaged later.
//   - A file that does not end with zeros was cut.
const (
	sectorSize = 512
	// reserveStep is by how much a reserve grows.
	reserveStep = 128 << 10
	// minReserve is the least number of zeros at the end.
	minReserve = entryAlign
)

// logContents is what a file holds.
type logContents struct {
	// entries are all that can be read, in the order of the file.
	entries []entry
	// damage is the error of the first place that cannot be read, or nil.
	damage error
	// ends is set if nothing was ever acknowledged after the last of the entries.
	ends bool
	// unfinished is set if a commit that was never acknowledged follows them.
	unfinished bool
}

// readLog reads a file of the journal. It is a function of its bytes, so that each damage
// can be tried without a disk.
func readLog(data []byte) (c logContents) {
	at := 0
	for !isZero(data[at:]) {
		e, size, err := readEntry(data[at:])
		if err == nil {
			c.entries = append(c.entries, e)
			at += size
			continue
		}
		next := findEntry(data, at+entryAlign)
		if next < 0 && len(c.entries) > 0 && isUnfinished(data, at) {
			c.ends, c.unfinished = true, true
			return c
		}
		c.note(at, err)
		if next < 0 {
			return c
		}
		at = next
	}
	switch {
	case len(c.entries) == 0:
		c.note(0, damaged("the file holds nothing"))
	case len(data)-at < minReserve:
		c.note(at, damaged("the file is cut short"))
	default:
		c.ends = true
	}
	return c
}

// note keeps the first damage.
func (c *logContents) note(at int, err error) {
	if c.damage == nil {
		c.damage = fmt.Errorf("at byte %d: %w", at, err)
	}
}

// snapshot returns the first entry that holds the whole state.
func (c logContents) snapshot() (entry, bool) {
	for _, e := range c.entries {
		if e.header.Whole {
			return e, true
		}
	}
	return entry{}, false
}

// findEntry returns the offset of the next readable entry, or -1.
func findEntry(data []byte, from int) int {
	for {
		i := bytes.Index(data[min(from, len(data)):], []byte(entryMagic))
		if i < 0 {
			return -1
		}
		from += i
		if _, _, err := readEntry(data[from:]); err == nil && from%entryAlign == 0 {
			return from
		}
		from++
	}
}

// isUnfinished reports whether what begins at an offset, and is no entry, can be what a
// crash left of a commit: a sector of it was not written, and nothing follows it.
func isUnfinished(data []byte, at int) bool {
	end := len(bytes.TrimRight(data, "\x00"))
	if size := readFrame(data[at:]); size > 0 {
		if end > at+size {
			return false
		}
		end = at + size
	}
	end = max(end, at+frameSize)    // no entry is shorter
	if len(data) < end+minReserve { // cut, which a crash does not do
		return false
	}
	for at < end {
		sector := min(end, at-at%sectorSize+sectorSize)
		if isZero(data[at:sector]) {
			return true
		}
		at = sector
	}
	return false
}

func isZero(data []byte) bool {
	for len(data) > 0 {
		n := min(len(data), len(zeros))
		if !bytes.Equal(data[:n], zeros[:n]) {
			return false
		}
		data = data[n:]
	}
	return true
}

var zeros [4096]byte
