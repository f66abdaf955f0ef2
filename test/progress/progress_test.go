package progress

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPipe_GetsALineEveryQuarterOfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		line := On(&out)
		for i := range 61 {
			line.Set("%d of 60", i)
			time.Sleep(time.Second)
		}
		line.Close()
		if got, want := out.String(), "15 of 60\n30 of 60\n45 of 60\n60 of 60\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestTerminal_OutputReplacesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		line := On(&out)
		line.terminal = true
		time.Sleep(blink)
		line.Set("half")
		line.Write([]byte("ok\n"))
		line.Close()
		if got, want := out.String(), "\r\x1b[Khalf\r\x1b[Kok\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
