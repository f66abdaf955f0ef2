package runtimetest_test

import (
	"testing"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process"
	"github.com/statusd/statusd/runtime/runtimetest"
)

// A runtime shows with one test that it keeps what its callers rely on.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestConformance
		runtimetest.Run(t, runtimetest.Config{
			Image: process.Image,
			Open: func(t *testing.T, dir string) (runtime.Runtime, func()) {
				rt, err := process.New(process.Options{Dir: dir})
				if err != nil {
					t.Fatal(err)
				}
				return rt, func() { rt.Close() }
			},
		})
	}
}
