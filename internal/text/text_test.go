package text_test

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/text"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", -time.Second: "0 s", 38 * time.Second: "38 s", 125 * time.Second: "2 min 5 s", 2 * time.Minute: "2 min",
		3*time.Hour + 2*time.Minute: "3 h 2 min", 3 * time.Hour: "3 h", 96 * time.Hour: "4 d", 97 * time.Hour: "4 d 1 h",
	} {
		if got := text.Span(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestTook_ShortTimes_KeepTwoDigits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0 s", 400 * time.Microsecond: "400 µs", 12*time.Millisecond + 400*time.Microsecond: "12 ms", 999600 * time.Microsecond: "1 s",
		1340 * time.Millisecond: "1.3 s", 9960 * time.Millisecond: "10 s", 12340 * time.Millisecond: "12 s", 125 * time.Second: "2 min 5 s",
	} {
		if got := text.Took(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 80 << 20: "80 MiB", 3 << 29: "1.5 GiB", 1955 << 20: "1.91 GiB", 12643 << 10: "12.3 MiB", 1<<30 - 1: "1024 MiB", math.MaxUint64: "16 EiB",
	} {
		if got := text.Bytes(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestEnds_KeepsWhatFailedAndWhy(t *testing.T) {
	long := `failed to pull image "registry.example/shop/app:v1": ` + strings.Repeat("failed to resolve reference ", 20) + "403 Forbidden"
	got := text.Ends(long, 200)
	if !strings.HasPrefix(got, `failed to pull image`) || !strings.HasSuffix(got, "403 Forbidden") || len(got) > 200 {
		t.Errorf("got %q", got)
	}
}

func TestLine_IsOneLineOfVisibleText(t *testing.T) {
	if got := text.Line("a\n\tb \x1b[31mred\u202e\xff"); got != "a b [31mred\uFFFD" {
		t.Errorf("got %q", got)
	}
}

func TestNearest(t *testing.T) {
	if got := text.Nearest("restart", []string{"name", "restarts"}); got != "restarts" {
		t.Errorf("got %q", got)
	}
	if got := text.Nearest("zzz", []string{"name", "restarts"}); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestCuts_AreBoundedAndValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, limit := rapid.String().Draw(t, "text"), rapid.IntRange(20, 80).Draw(t, "limit")
		for _, cut := range []string{text.Cut(s, limit), text.Ends(s, limit)} {
			if len(cut) > limit || !utf8.ValidString(cut) {
				t.Fatalf("%q of %q", cut, s)
			}
		}
	})
}
