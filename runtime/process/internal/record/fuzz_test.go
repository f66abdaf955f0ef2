package record

import (
	"encoding/json"
	"testing"
)

// Whatever a record has become on the disk, it is refused or complete, also one of a release without checksums.
func FuzzRead(f *testing.F) {
	sealed, err := seal("spec.json", &Spec{ID: "a", Name: "main", Command: []string{"true"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add([]byte(`{"id":"a","name":"main","command":["true"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var spec Spec
		if unseal("spec.json", data, &spec) == nil && !spec.Complete() {
			t.Errorf("got %+v of %q, want an error", spec, data)
		}
		var exit Exit
		if unseal("exit.json", data, &exit) == nil && !exit.Complete() {
			t.Errorf("got %+v of %q, want an error", exit, data)
		}
		if text, err := seal("spec.json", &spec); err != nil || !json.Valid(text) {
			t.Errorf("got %q and error %v for what was read", text, err)
		}
	})
}
