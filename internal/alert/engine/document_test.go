package engine

import (
	"bytes"
	"flag"
	"os"
	"testing"

	_ "github.com/cockroachdb/datadriven" // has the flag -rewrite
)

const documentFile = "../../../docs/reference/alert-rules.md"

// docs/reference/alert-rules.md is what the code says; go test ./internal/alert/engine -run TestDocument -rewrite writes it.
func TestDocument(t *testing.T) {
	var page bytes.Buffer
	if err := WriteDocument(&page); err != nil {
		t.Fatal(err)
	}
	if rewrite := flag.Lookup("rewrite"); rewrite != nil && rewrite.Value.String() == "true" {
		if err := os.WriteFile(documentFile, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, page.Bytes()) {
		t.Error("docs/reference/alert-rules.md is not what the code says: go test ./internal/alert/engine -run TestDocument -rewrite")
	}
}
