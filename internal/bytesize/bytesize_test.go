package bytesize_test

import (
	"math"
	"testing"

	"github.com/statusd/statusd/internal/bytesize"
)

func TestText(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 80 << 20: "80 MiB", 3 << 29: "1.5 GiB", 1<<30 - 1: "1024 MiB", math.MaxUint64: "16 EiB",
	} {
		if got := bytesize.Text(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
