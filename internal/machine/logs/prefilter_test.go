package logs

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// A chunk gives exactly the lines that a rule may match, in order and once.
func TestThePrefilterGivesTheLinesThatCount(t *testing.T) {
	chunk := []byte("EXT4-fs error EXT4-fs error\r\nnothing\nEXT4-fs warning, then Buffer I/O error\n\nlast EXT4-fs error\n")
	rules, err := compile(DefaultRules())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	list := func(line []byte) { got = append(got, string(line)) }
	newPrefilter(rules, []Origin{Kernel}).lines(chunk, list)
	want := []string{"EXT4-fs error EXT4-fs error", "EXT4-fs warning, then Buffer I/O error", "last EXT4-fs error"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	got = nil
	newPrefilter(rules, []Origin{KubeletLog}).lines(chunk, list)
	if len(got) != 0 {
		t.Errorf("with the rules of another origin there are %q", got)
	}
	got = nil
	(&prefilter{}).lines(chunk, list)
	if len(got) != 5 {
		t.Errorf("without texts there are %q", got)
	}
}

// A rule without a text that can be searched for makes every line of its own origin count, and of no other.
func TestARuleWithoutATextIsTriedOnEachLine(t *testing.T) {
	rules, err := compile([]Rule{
		{Origin: KubeletLog, Reason: "AnyCase", Severity: Info, Match: `(?i)out of memory`},
		{Origin: KubeletLog, Reason: "Short", Severity: Info, Match: `E\d+`},
		{Origin: RuntimeLog, Reason: "Plain", Severity: Info, Match: `a plain text`},
	})
	if err != nil {
		t.Fatal(err)
	}
	if newPrefilter(rules, []Origin{KubeletLog}).complete || !newPrefilter(rules, []Origin{RuntimeLog}).complete {
		t.Error("the wrong rules can be searched for by texts")
	}
	if list := find(rules, KubeletLog, "OUT of Memory, E7"); len(list) != 2 {
		t.Errorf("found %+v", list)
	}
}

// The leaps pass over no text: the result is that of a plain search.
func TestThePrefilterFindsWhatAPlainSearchFinds(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	word := func(n int) []byte {
		text := make([]byte, n)
		for i := range text {
			text[i] = "ab\x00\xff"[random.IntN(4)]
		}
		return text
	}
	for range 2000 {
		f := &prefilter{complete: true}
		for range 1 + random.IntN(5) {
			f.texts = append(f.texts, word(4+random.IntN(6)))
		}
		f.index()
		data := word(random.IntN(200))
		want := -1
		for _, text := range f.texts {
			if i := bytes.Index(data, text); i >= 0 && (want < 0 || i < want) {
				want = i
			}
		}
		if got := f.next(data); got != want {
			t.Fatalf("seed %d: %q in %q: %d, want %d", seed, f.texts, data, got, want)
		}
	}
}
