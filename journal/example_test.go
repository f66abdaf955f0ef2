package journal_test

import (
	"fmt"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
)

// The end of a pod survives a restart of the process.
func Example() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "journal.db")

	first, err := journal.Open(path, journal.Options{NodeName: "node"})
	if err != nil {
		panic(err)
	}
	end := podstatus.Final{Namespace: "default", Name: "job", Version: 7, Status: v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted"}}
	fmt.Println(first.SetFinal("uid", end)) // on disk when it returns
	first.Close()

	second, err := journal.Open(path, journal.Options{NodeName: "node"})
	if err != nil {
		panic(err)
	}
	defer second.Close()
	fmt.Println(second.Finals()["uid"].Status.Reason)
	// Output:
	// <nil>
	// Evicted
}
