package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/scenes"
)

// storm plays lies and faults by seed, until the time is over or something was wrong: a lie that was not seen within its bound, drift that is
// none, or a restart of a kubelet that works.
func storm(ctx context.Context, o options, stage *scenes.Stage) error {
	expression, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	lies := slices.DeleteFunc(scenes.Lies(), func(lie scenes.Lie) bool { return !expression.MatchString(lie.Name) })
	if len(lies) == 0 {
		return fmt.Errorf("no lie matches %q", o.only)
	}
	var after []time.Duration
	told, seen := 0, 0
	begin := time.Now()
	for round := 0; time.Since(begin) < time.Duration(o.minutes)*time.Minute; round++ {
		all, err := stage.TellAll(ctx, scenes.Storm(o.seed, round, lies)...)
		if err != nil {
			return fmt.Errorf("seed %d, round %d: %w", o.seed, round, err)
		}
		var wrong []error
		for _, t := range all {
			told++
			text := "not seen, rightly"
			switch {
			case t.Wrong != "":
				text = "WRONG: " + t.Wrong
				wrong = append(wrong, errors.New(t.Lie.Name+": "+t.Wrong))
			case t.Seen != nil || t.Silent != "":
				seen++
				after = append(after, t.After)
				text = "seen after " + t.After.Round(100*time.Millisecond).String()
			}
			fmt.Printf("round %d: %s: %s; the guard: %s\n", round, t.Lie.Name, text, t.Health)
		}
		if len(wrong) > 0 {
			return fmt.Errorf("after %s; the same lies again: -seed %d: %w", time.Since(begin).Round(time.Second), o.seed, errors.Join(wrong...))
		}
	}
	fmt.Printf("%s, %d lies and faults, %d seen (%s), nothing wrong\n", time.Since(begin).Round(time.Second), told, seen, campaign.Spread(after))
	return nil
}
