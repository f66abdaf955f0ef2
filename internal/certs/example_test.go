package certs_test

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/statusd/statusd/internal/certs"
)

// A node that has no kubeconfig yet must obtain a certificate first.
func ExampleNeeded() {
	needed, err := certs.Needed(filepath.Join("testdata", "does-not-exist.kubeconfig"), time.Now())
	fmt.Println(needed, err)
	// Output: true <nil>
}
