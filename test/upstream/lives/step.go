package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// step is something that happens during a life. As text it is one line: how long after the pod's
// creation, what, and an argument.
//
//	5s create settings   the object of this name in the pod's file is created
//	5s delete filler     it is deleted
//	5s resize {...}      the pod is patched by its subresource resize
//	5s outgrow {...}     the same, although the API server refuses what the node cannot take
//	5s edit              the manifest of the static pod is replaced by the second one of the file
//	5s force             the pod is deleted without waiting for its node
//	5s again             the pod is created again, with the same name
//	5s restart           the agent is killed and started
//	5s reboot            the machine loses its power and boots
//	5s shutdown          the machine announces that it shuts down
type step struct {
	at             time.Duration
	verb, argument string
}

var verbs = []string{"create", "delete", "resize", "outgrow", "edit", "force", "again", "restart", "reboot", "shutdown"}

func parseSteps(text string) ([]step, error) {
	var steps []step
	for line := range strings.Lines(text) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(words) < 2 {
			return nil, fmt.Errorf("%q is not a time and a verb", line)
		}
		at, err := time.ParseDuration(words[0])
		if err != nil {
			return nil, err
		}
		if !slices.Contains(verbs, words[1]) {
			return nil, fmt.Errorf("%q is none of %q", words[1], verbs)
		}
		steps = append(steps, step{at: at, verb: words[1], argument: strings.Join(words[2:], " ")})
	}
	return steps, nil
}

// play does the steps in order, each at its time.
func play(ctx context.Context, steps []step, do func(context.Context, step) error) error {
	start := time.Now()
	for _, s := range steps {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Until(start.Add(s.at))):
		}
		if err := do(ctx, s); err != nil {
			return fmt.Errorf("%v %s %s: %w", s.at, s.verb, s.argument, err)
		}
	}
	return nil
}
