package journal

import (
	"testing"

	bolt "go.etcd.io/bbolt"
)

// boltRecords reads a file through bbolt, after bbolt's own check of it.
func boltRecords(t *testing.T, path string) map[recordKey][]byte {
	t.Helper()
	db, err := bolt.Open(path, 0o600, boltOptions())
	if err != nil {
		t.Fatal(err)
	}
	records := map[recordKey][]byte{}
	err = db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			t.Errorf("bbolt's check: %v", err)
		}
		return tx.ForEach(func(bucket []byte, b *bolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				records[recordKey{kind(bucket), string(k)}] = append([]byte{}, v...)
				return nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return records
}
