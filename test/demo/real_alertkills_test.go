//go:build real

package main

import (
	"strings"
	"testing"

	"github.com/statusd/statusd/test/binaries"
)

// No alert is lost when statusd is killed at any moment: make alerting-kills has more of it.
func TestAlertsSurviveKill9(t *testing.T) {
	binary, state := binaries.Path(t, binaries.Statusd), t.TempDir()
	t.Chdir("../..") // where make runs it
	out := &transcript{more: make(chan struct{}, 1)}
	d := &demo{out: out, state: state, statusd: binary}
	if err := d.alertingKills(t.Context(), 8, 1); err != nil {
		t.Fatal(err)
	}
	if want := "4 alerts fired and reached the receiver, 0 of them are not resolved"; !strings.Contains(out.String(), want) {
		t.Errorf("got %s, want %s", out, want)
	}
}
