package main

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func lifeOf(states ...state) recording {
	var r recording
	for _, s := range states {
		r = append(r, moment{state: s})
	}
	return r
}

func TestAlignPutsEqualStatesBesideEachOther(t *testing.T) {
	pending, creating, running := state{headline: "Pending"}, state{headline: "ContainerCreating"}, state{headline: "Running"}
	bare := state{headline: "Running", details: []string{"without an address"}}

	pairs := align(lifeOf(pending, creating, running, gone), lifeOf(pending, bare, running, gone))
	var got string
	for _, p := range pairs {
		got += sign(p)
	}
	if want := "=<>=="; got != want {
		t.Errorf("signs are %q, want %q: the second state of each is its own, the rest is shared", got, want)
	}

	pairs = align(lifeOf(pending, bare, gone), lifeOf(pending, running, gone))
	if len(pairs) != 3 || pairs[1].same() || sign(pairs[1]) != "~" {
		t.Errorf("states that kubectl prints alike should share a pair marked ~, got %v", pairs)
	}
}

func TestAlignKeepsEveryStateInOrder(t *testing.T) {
	side := func(pairs []pair, of func(pair) *moment) recording {
		var r recording
		for _, p := range pairs {
			if m := of(p); m != nil {
				r = append(r, *m)
			}
		}
		return r
	}
	same := func(a, b moment) bool { return a.state.equal(b.state) }
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.Custom(func(t *rapid.T) recording {
			var r recording
			for _, word := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "a1", "b", "b1"}), 0, 8).Draw(t, "words") {
				r = append(r, moment{state: state{headline: word[:1], details: []string{word}}})
			}
			return r
		})
		kubelet, statusd := draw.Draw(t, "kubelet"), draw.Draw(t, "statusd")
		pairs := align(kubelet, statusd)
		if got := side(pairs, func(p pair) *moment { return p.kubelet }); !slices.EqualFunc(got, kubelet, same) {
			t.Fatalf("kubelet's side is\n%s\nwant\n%s", got, kubelet)
		}
		if got := side(pairs, func(p pair) *moment { return p.statusd }); !slices.EqualFunc(got, statusd, same) {
			t.Fatalf("statusd's side is\n%s\nwant\n%s", got, statusd)
		}
		if slices.EqualFunc(kubelet, statusd, same) && slices.ContainsFunc(pairs, func(p pair) bool { return !p.same() }) {
			t.Fatalf("equal lives are not aligned one to one:\n%s", sideBySide(pairs))
		}
	})
}
