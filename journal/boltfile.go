package journal

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"math"
)

// This file reads a bbolt file with suspicion. bbolt trusts its pages: on a damaged file
// it panics (also in goroutines of its own, where nobody can recover), follows a page in
// circles, or leaves records out. So nothing is given to bbolt before every page that can
// be reached has been checked here, where each index is tested before it is used.
//
// The layout is bbolt's version 2: two meta pages, then branch and leaf pages of a B+ tree
// whose leaves hold buckets, in the byte order of the machine.
const (
	pageSize       = 4096
	pageHeader     = 16 // id, flags, count, overflow
	elementSize    = 16
	bucketHeader   = 16 // root page, sequence
	metaSize       = 64
	boltMagic      = 0xED0CDAED
	boltVersion    = 2
	branchPage     = 0x01
	leafPage       = 0x02
	bucketElement  = 0x01
	noFreelist     = math.MaxUint64
	maxBoltDepth   = 64
	firstDataPage  = 2
	metaChecksumAt = 56
)

var native = binary.NativeEndian

// boltMeta is one of the two meta pages; commits alternate between them.
type boltMeta struct {
	rootPage, freelist, pages, txid uint64
}

// boltContents is what a bbolt file holds.
type boltContents struct {
	records map[recordKey][]byte
	// metaDamage is set when one of the two meta pages cannot be read. The other one then
	// decided, which is the commit before if the newer one is lost.
	metaDamage error
}

// readBolt returns the records of a bbolt file, the values as parts of data. The error
// wraps ErrDamaged.
func readBolt(data []byte) (boltContents, error) {
	meta, metaDamage, err := newestMeta(data)
	if err != nil {
		return boltContents{}, err
	}
	if meta.pages > uint64(len(data))/pageSize {
		return boltContents{}, damaged("the file has %d bytes and should have %d pages of %d", len(data), meta.pages, pageSize)
	}
	if meta.freelist != noFreelist {
		return boltContents{}, damaged("the file has a freelist, which a journal never writes")
	}
	r := boltReader{data: data, seen: make([]bool, meta.pages), records: map[recordKey][]byte{}}
	if err := r.tree(meta.rootPage, bounds{}, 0, r.bucket); err != nil {
		return boltContents{}, err
	}
	return boltContents{records: r.records, metaDamage: metaDamage}, nil
}

func newestMeta(data []byte) (newest boltMeta, damage, err error) {
	var metas [2]boltMeta
	var errs [2]error
	for i := range metas {
		metas[i], errs[i] = readMeta(data, i)
	}
	switch {
	case errs[0] != nil && errs[1] != nil:
		return boltMeta{}, nil, errs[0]
	case errs[0] != nil:
		return metas[1], errs[0], nil
	case errs[1] != nil:
		return metas[0], errs[1], nil
	case metas[0].txid > metas[1].txid:
		return metas[0], nil, nil
	default:
		return metas[1], nil, nil
	}
}

func readMeta(data []byte, i int) (boltMeta, error) {
	start := i*pageSize + pageHeader
	if len(data) < start+metaSize {
		return boltMeta{}, damaged("the file has %d bytes and ends before meta page %d", len(data), i)
	}
	b := data[start : start+metaSize]
	sum := fnv.New64a()
	sum.Write(b[:metaChecksumAt])
	meta := boltMeta{
		rootPage: native.Uint64(b[16:]),
		freelist: native.Uint64(b[32:]),
		pages:    native.Uint64(b[40:]),
		txid:     native.Uint64(b[48:]),
	}
	switch {
	case native.Uint32(b) != boltMagic, native.Uint32(b[4:]) != boltVersion, native.Uint32(b[8:]) != pageSize:
		return boltMeta{}, damaged("meta page %d is not one of a journal", i)
	case native.Uint64(b[metaChecksumAt:]) != sum.Sum64():
		return boltMeta{}, damaged("meta page %d has a wrong checksum", i)
	case meta.txid%2 != uint64(i):
		return boltMeta{}, damaged("meta page %d is in the wrong place", i)
	}
	return meta, nil
}

// bounds limits the keys of a subtree: from is inclusive, before exclusive, nil is open.
type bounds struct{ from, before []byte }

func (b bounds) hold(key []byte) bool {
	return bytes.Compare(key, b.from) >= 0 && (b.before == nil || bytes.Compare(key, b.before) < 0)
}

// element is one entry of a page: a child in a branch, a key and value in a leaf.
type element struct {
	key, value []byte
	flags      uint32
	child      uint64
}

type boltReader struct {
	data    []byte
	seen    []bool
	records map[recordKey][]byte
}

// tree visits every leaf element below the page, in order of keys.
func (r *boltReader) tree(id uint64, limits bounds, depth int, visit func(element) error) error {
	if depth > maxBoltDepth {
		return damaged("page %d is deeper than a tree can be", id)
	}
	page, isBranch, err := r.page(id)
	if err != nil {
		return err
	}
	elements, err := readElements(page, isBranch, limits)
	if err != nil {
		return damaged("page %d: %v", id, err)
	}
	for i, e := range elements {
		if !isBranch {
			if err := visit(e); err != nil {
				return err
			}
			continue
		}
		below := bounds{from: e.key, before: limits.before}
		if i+1 < len(elements) {
			below.before = elements[i+1].key
		}
		if err := r.tree(e.child, below, depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}

// page returns a page with its overflow pages. Each can be reached only once.
func (r *boltReader) page(id uint64) (page []byte, isBranch bool, err error) {
	pages := uint64(len(r.seen))
	if id < firstDataPage || id >= pages {
		return nil, false, damaged("page %d is outside the %d pages of the file", id, pages)
	}
	header := r.data[id*pageSize:]
	flags, overflow := native.Uint16(header[8:]), uint64(native.Uint32(header[12:]))
	if native.Uint64(header) != id || (flags != branchPage && flags != leafPage) || id+overflow >= pages {
		return nil, false, damaged("page %d has a wrong header", id)
	}
	for i := id; i <= id+overflow; i++ {
		if r.seen[i] {
			return nil, false, damaged("page %d is used twice", i)
		}
		r.seen[i] = true
	}
	return r.data[id*pageSize : (id+overflow+1)*pageSize], flags == branchPage, nil
}

func readElements(page []byte, isBranch bool, limits bounds) ([]element, error) {
	count := uint64(native.Uint16(page[10:]))
	if isBranch && count == 0 {
		return nil, damaged("a branch without children")
	}
	if pageHeader+count*elementSize > uint64(len(page)) {
		return nil, damaged("%d elements do not fit", count)
	}
	elements := make([]element, count)
	for i := range elements {
		at := pageHeader + uint64(i)*elementSize
		raw := page[at : at+elementSize]
		var e element
		var position, keySize, valueSize uint64
		if isBranch {
			position, keySize = uint64(native.Uint32(raw)), uint64(native.Uint32(raw[4:]))
			e.child = native.Uint64(raw[8:])
		} else {
			e.flags = native.Uint32(raw)
			position, keySize, valueSize = uint64(native.Uint32(raw[4:])), uint64(native.Uint32(raw[8:])), uint64(native.Uint32(raw[12:]))
		}
		start := at + position // each term is below 2^33, so that nothing wraps around
		if start+keySize+valueSize > uint64(len(page)) {
			return nil, damaged("element %d reaches past the end", i)
		}
		e.key = page[start : start+keySize]
		e.value = page[start+keySize : start+keySize+valueSize]
		if !limits.hold(e.key) || (i > 0 && bytes.Compare(elements[i-1].key, e.key) >= 0) {
			return nil, damaged("the key of element %d is out of order", i)
		}
		elements[i] = e
	}
	return elements, nil
}

// bucket reads the bucket that a leaf element of the top tree describes.
func (r *boltReader) bucket(e element) error {
	if e.flags != bucketElement || len(e.value) < bucketHeader {
		return damaged("%.40q is not a bucket", e.key)
	}
	name := kind(e.key)
	record := func(e element) error {
		if e.flags != 0 {
			return damaged("%s/%.40q is not a record", name, e.key)
		}
		r.records[recordKey{name, string(e.key)}] = e.value
		return nil
	}
	if rootPage := native.Uint64(e.value); rootPage != 0 {
		return r.tree(rootPage, bounds{}, 0, record)
	}
	return inlineBucket(name, e.value[bucketHeader:], record)
}

// inlineBucket reads a bucket so small that its only page is kept inside the value.
func inlineBucket(name kind, page []byte, visit func(element) error) error {
	if len(page) < pageHeader || native.Uint16(page[8:]) != leafPage {
		return damaged("bucket %s has a wrong header", name)
	}
	elements, err := readElements(page, false, bounds{})
	if err != nil {
		return damaged("bucket %s: %v", name, err)
	}
	for _, e := range elements {
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}
