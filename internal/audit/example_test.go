package audit_test

import (
	"fmt"
	"time"

	"github.com/statusd/statusd/internal/audit"
)

// A side that has never answered is unknown: what it does not have may exist there.
func ExampleAnswer_Known() {
	var kubelet audit.Answer
	fmt.Println(kubelet.Known())
	kubelet.At = time.Now()
	fmt.Println(kubelet.Known())
	kubelet.Err = "connection refused"
	fmt.Println(kubelet.Known())
	// Output:
	// false
	// true
	// false
}
