package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStepsAreReadLineByLine(t *testing.T) {
	steps, err := parseSteps("5s resize {\"spec\": {}}\n8s reboot\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []step{{5 * time.Second, "resize", `{"spec": {}}`}, {8 * time.Second, "reboot", ""}}
	if len(steps) != 2 || steps[0] != want[0] || steps[1] != want[1] {
		t.Errorf("steps are %v, want %v", steps, want)
	}
	for _, text := range []string{"reboot", "soon reboot", "5s explode"} {
		if steps, err := parseSteps(text); err == nil {
			t.Errorf("%q gives %v, want an error", text, steps)
		}
	}
}

func TestStepsHappenAtTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var done []time.Duration
		err := play(t.Context(), []step{{at: time.Second}, {at: 3 * time.Second}, {at: 4 * time.Second}}, func(context.Context, step) error {
			done = append(done, time.Since(start))
			time.Sleep(2 * time.Second) // longer than the next but one waits
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []time.Duration{time.Second, 3 * time.Second, 5 * time.Second} {
			if done[i] != want {
				t.Errorf("step %d happened after %v, want %v: not before its time, and after the one before it", i, done[i], want)
			}
		}
	})
}

func TestAStepThatFailsIsTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		err := play(t.Context(), []step{{verb: "reboot"}, {verb: "restart"}}, func(context.Context, step) error {
			n++
			return errors.New("no power")
		})
		if n != 1 || err == nil || !strings.Contains(err.Error(), "reboot") {
			t.Errorf("%d steps, error %v; want one, and an error that names it", n, err)
		}
	})
}
