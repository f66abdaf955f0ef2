package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(clockVariable) != "" {
		tellTime()
		return
	}
	goleak.VerifyTestMain(m)
}
