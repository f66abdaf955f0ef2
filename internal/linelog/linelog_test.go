package linelog_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/linelog"
)

// The bytes on disk are those of earlier versions.
func TestAppend_WritesTheSameBytes(t *testing.T) {
	got, err := linelog.Append(nil, map[string]int{"seen": 3})
	if err != nil || string(got) != "0dd8335b {\"seen\":3}\n" {
		t.Errorf("got %q (%v)", got, err)
	}
}

// A line is read as it was written, or not at all.
func TestParse_RefusesWhatIsDamaged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		data, err := linelog.Append(nil, struct{ Text string }{text})
		if err != nil {
			t.Fatal(err)
		}
		data = data[:len(data)-1]
		at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
		data[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		var got struct{ Text string }
		if err := linelog.Parse(data, &got); !errors.Is(err, linelog.ErrDamaged) && !(at < 8 && got.Text == text) { // the checksum in capitals
			t.Fatalf("%q was taken", data)
		}
	})
}
