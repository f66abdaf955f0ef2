package journal

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"time"
)

// An entry of the log is one commit:
//
//	"SDJ2" | body length, 4 bytes | CRC-32C of these 8 bytes | SHA-256 of the body | body
//
// The body is the header as JSON after its length, the number of writes, the writes, and
// spaces up to a multiple of 8 bytes. A write is kind, key and record, each after its
// length; the length deletedRecord instead of a record deletes it. Numbers have 4 bytes and
// are big-endian. The frame and the header's fields format and node stay as they are in every
// format, so that an older statusd can report the format and the node.
const (
	entryMagic    = "SDJ2"
	frameSize     = 8 + 4 + sha256.Size
	entryAlign    = 8
	maxBody       = math.MaxInt32
	deletedRecord = math.MaxUint32
)

// header describes a commit.
type header struct {
	// Format is the version of the format of all records.
	Format int `json:"format"`
	// Node is the node whose journal this is.
	Node string `json:"node"`
	// ID distinguishes this journal from others.
	ID string `json:"id"`
	// Sequence is the number of the commit, one more than the previous.
	Sequence uint64 `json:"sequence"`
	// Whole marks a snapshot: the entry holds the whole state, not a change.
	Whole bool `json:"whole,omitempty"`
	// Committed is the time of this commit.
	Committed time.Time `json:"committed"`
	Opened    time.Time `json:"opened"`
	// Clean marks the commit that closed the journal.
	Clean bool `json:"clean,omitempty"`
	// Closed is when the journal was last closed cleanly.
	Closed time.Time `json:"closed,omitzero"`
}

// entry is one commit: a header and what the commit writes.
type entry struct {
	header header
	writes []write
}

// write puts or, with a nil record, deletes one record.
type write struct {
	recordKey
	record []byte
}

func castagnoli(data []byte) uint32 {
	return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) // the package keeps one table
}

func (e entry) encode() ([]byte, error) {
	head, err := json.Marshal(e.header)
	if err != nil {
		return nil, err
	}
	data := make([]byte, frameSize, frameSize+len(head)+128)
	copy(data, entryMagic)
	data = appendPart(data, head)
	data = binary.BigEndian.AppendUint32(data, uint32(len(e.writes)))
	for _, w := range e.writes {
		data = appendPart(data, []byte(w.kind))
		data = appendPart(data, []byte(w.key))
		if w.record == nil {
			data = binary.BigEndian.AppendUint32(data, deletedRecord)
		} else {
			data = appendPart(data, w.record)
		}
	}
	for len(data)%entryAlign != 0 {
		data = append(data, ' ')
	}
	body := data[frameSize:]
	if len(body) > maxBody {
		return nil, invalid("a commit of %d bytes, the limit is %d", len(body), maxBody)
	}
	sum := sha256.Sum256(body)
	binary.BigEndian.PutUint32(data[4:], uint32(len(body)))
	binary.BigEndian.PutUint32(data[8:], castagnoli(data[:8]))
	copy(data[12:], sum[:])
	return data, nil
}

func appendPart(data, part []byte) []byte {
	return append(binary.BigEndian.AppendUint32(data, uint32(len(part))), part...)
}

// readFrame returns the size of the entry that data begins with, 0 if it begins with none.
func readFrame(data []byte) int {
	if len(data) < frameSize || string(data[:4]) != entryMagic || binary.BigEndian.Uint32(data[8:]) != castagnoli(data[:8]) {
		return 0
	}
	length := binary.BigEndian.Uint32(data[4:])
	if length > maxBody {
		return 0
	}
	return frameSize + int(length)
}

// readEntry reads the entry that data begins with. Its records are parts of data. The
// error wraps ErrDamaged.
func readEntry(data []byte) (e entry, size int, err error) {
	size = readFrame(data)
	switch {
	case size == 0:
		return entry{}, 0, damaged("no entry begins here")
	case size > len(data):
		return entry{}, 0, damaged("the entry is cut short")
	}
	body := data[frameSize:size]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], data[12:frameSize]) {
		return entry{}, 0, damaged("the entry has a wrong checksum")
	}
	p := parts{rest: body}
	if err := json.Unmarshal(p.next(), &e.header); err != nil {
		return entry{}, 0, damaged("header: %v", err)
	}
	for range p.number() {
		if p.short {
			break
		}
		k := recordKey{kind(p.next()), string(p.next())}
		e.writes = append(e.writes, write{k, p.next()})
	}
	if p.short && e.header.Format <= currentFormat { // what follows may look different in a newer one
		return entry{}, 0, damaged("the entry has the right checksum and ends too early")
	}
	return e, size, nil
}

// parts reads length-prefixed parts. After the first that does not fit, short is set and
// everything is empty.
type parts struct {
	rest  []byte
	short bool
}

func (p *parts) number() uint32 {
	if p.short = p.short || len(p.rest) < 4; p.short {
		return 0
	}
	n := binary.BigEndian.Uint32(p.rest)
	p.rest = p.rest[4:]
	return n
}

// next returns the next part, nil for a deleted record.
func (p *parts) next() []byte {
	n := p.number()
	if n == deletedRecord {
		return nil
	}
	if p.short = p.short || uint64(n) > uint64(len(p.rest)); p.short {
		return nil
	}
	part := p.rest[:n:n]
	p.rest = p.rest[n:]
	return part
}

// image is the whole state after a commit.
type image struct {
	header  header
	records map[recordKey][]byte
}

// apply makes the image the state after the commit.
func (img *image) apply(e entry) {
	img.header = e.header
	for _, w := range e.writes {
		if w.record == nil {
			delete(img.records, w.recordKey)
		} else {
			img.records[w.recordKey] = w.record
		}
	}
}

// snapshot is the image as one entry, with the records in order.
func (img image) snapshot() entry {
	e := entry{header: img.header, writes: make([]write, 0, len(img.records))}
	e.header.Whole = true
	for _, k := range slices.SortedFunc(maps.Keys(img.records), recordKey.compare) {
		e.writes = append(e.writes, write{k, img.records[k]})
	}
	return e
}

func (k recordKey) compare(other recordKey) int {
	return cmp.Or(cmp.Compare(k.kind, other.kind), cmp.Compare(k.key, other.key))
}

// tables decodes every record.
func (img image) tables() (*tables, error) {
	t := newTables()
	for k, record := range img.records {
		value, err := decode(k, record)
		if err != nil {
			return nil, err
		}
		t.apply(change{k, value})
	}
	return t, nil
}
