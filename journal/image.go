package journal

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"time"
)

// The root record describes all others. Its place, its envelope and the fields format and
// node stay as they are in every format, so that an older statusd can say what it found.
const (
	metaBucket = "meta"
	rootKey    = "root"
	// rootPayloadStart is how a root record begins; no other record does.
	rootPayloadStart = `{"format":`
)

var rootRecord = recordKey{metaBucket, rootKey}

// root is the record that each commit rewrites.
type root struct {
	// Format is the version of the format of all records.
	Format int `json:"format"`
	// Node is the node whose journal this is.
	Node string `json:"node"`
	// ID tells this journal from others; a copy is compared only with its own journal.
	ID string `json:"id"`
	// Sequence grows with each commit.
	Sequence uint64 `json:"sequence"`
	// Records and Digest describe the set of all other records: bbolt does not notice
	// when a damaged page hides a record or brings an old one back, these do.
	Records int    `json:"records"`
	Digest  string `json:"digest"`
	// Committed is the time of this commit.
	Committed time.Time `json:"committed"`
	Opened    time.Time `json:"opened"`
	// Clean says that this commit was the one that closed the journal.
	Clean bool `json:"clean"`
	// Closed is when the journal was last closed cleanly.
	Closed time.Time `json:"closed,omitzero"`
}

func (r root) seal() []byte {
	payload, err := json.Marshal(r)
	if err != nil {
		panic("journal: a root record is made of plain fields: " + err.Error())
	}
	return seal(metaBucket, rootKey, payload)
}

func unsealRoot(record []byte) (root, error) {
	payload, err := unseal(metaBucket, rootKey, record)
	if err != nil {
		return root{}, err
	}
	return fromJSON[root](rootRecord, payload)
}

// digest is the XOR of the hashes of a set of records: adding and removing a record are
// the same cheap operation, and the order does not matter.
type digest [sha256.Size]byte

func recordDigest(k recordKey, record []byte) digest {
	text := make([]byte, 0, 8+len(k.kind)+len(k.key)+len(record))
	text = binary.BigEndian.AppendUint32(text, uint32(len(k.kind)))
	text = binary.BigEndian.AppendUint32(text, uint32(len(k.key)))
	text = append(text, k.kind...)
	text = append(text, k.key...)
	return sha256.Sum256(append(text, record...))
}

func (d *digest) toggle(other digest) {
	subtle.XORBytes(d[:], d[:], other[:])
}

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// image is the whole state as it is on disk, whether in a bbolt file or in a copy.
type image struct {
	root    root
	records map[recordKey][]byte
}

// newImage makes sense of what a file holds, by bucket and key. The error wraps ErrDamaged
// or says that the format is newer; then only the root of the image can be used.
func newImage(contents map[recordKey][]byte, current int) (image, error) {
	record, ok := contents[rootRecord]
	if !ok {
		return image{}, damaged("the root record is missing")
	}
	r, err := unsealRoot(record)
	if err != nil {
		return image{}, err
	}
	img := image{root: r, records: contents}
	delete(img.records, rootRecord)
	if r.Format > current {
		return img, ErrNewerFormat
	}
	return img, img.verify()
}

// verify compares the records with what the root says of them all. Only if that is wrong
// the checksums of the records are of interest, to tell which one it is.
func (img image) verify() error {
	if len(img.records) == img.root.Records && img.sum().String() == img.root.Digest {
		return nil
	}
	for k, record := range img.records {
		if _, err := unseal(string(k.kind), k.key, record); err != nil {
			return err
		}
	}
	return damaged("%d records found that are not the %d records of commit %d",
		len(img.records), img.root.Records, img.root.Sequence)
}

// describe brings records and digest of the root up to date.
func (img *image) describe() {
	img.root.Records, img.root.Digest = len(img.records), img.sum().String()
}

func (img image) sum() (sum digest) {
	for k, record := range img.records {
		sum.toggle(recordDigest(k, record))
	}
	return sum
}

// apply makes the image what a commit made of the file.
func (img *image) apply(r root, writes []write) {
	img.root = r
	for _, w := range writes {
		if w.record == nil {
			delete(img.records, w.recordKey)
		} else {
			img.records[w.recordKey] = w.record
		}
	}
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
