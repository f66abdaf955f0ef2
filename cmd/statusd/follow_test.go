package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/statusd/statusd/explain"
)

// Scripts rely on the exit codes of explain --watch.
func TestFollow_ExitCodes(t *testing.T) {
	starting, ready, failed, succeeded := explain.StateStarting, explain.StateReady, explain.StateFailed, explain.StateSucceeded
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web")
	for _, test := range []struct {
		name    string
		command explainCommand
		answers []any // states and errors; the last one stays
		want    int
		lines   int
	}{
		{"ready in the end", explainCommand{until: true}, []any{starting, starting, ready}, 0, 2},
		{"a job that is done", explainCommand{until: true}, []any{starting, succeeded}, 0, 2},
		{"failed for good", explainCommand{until: true}, []any{starting, failed}, exitFailure, 2},
		{"never there", explainCommand{until: true}, []any{gone}, exitNotFound, 0},
		{"gone while it is watched", explainCommand{until: true}, []any{starting, gone}, exitNotFound, 1},
		{"an API server that is away for a moment", explainCommand{until: true}, []any{starting, errUnreachable, errUnreachable, ready}, 0, 2},
		{"an API server that was never there", explainCommand{until: true}, []any{errUnreachable}, exitUnreachable, 0},
		{"not ready in time", explainCommand{until: true, patience: time.Minute}, []any{starting}, exitNotReady, 1},
		{"an API server that does not come back in time", explainCommand{until: true, patience: time.Minute}, []any{starting, errUnreachable}, exitNotReady, 1},
		{"one look at what is not ready", explainCommand{status: true}, []any{starting}, exitNotReady, 1},
		{"one look at what is ready", explainCommand{status: true}, []any{ready}, 0, 1},
		{"one look without a wish", explainCommand{}, []any{failed}, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				err := test.command.follow(t.Context(), &out, func(context.Context) (explain.Explanation, error) {
					answer := test.answers[0]
					if len(test.answers) > 1 {
						test.answers = test.answers[1:]
					}
					if state, ok := answer.(explain.State); ok {
						return explain.Explanation{Namespace: "shop", Name: "web", State: state}, nil
					}
					return explain.Explanation{}, answer.(error)
				})
				got := 0
				if answer := exitError(0); errors.As(err, &answer) {
					got = int(answer)
				} else if err != nil {
					got = exitCode(err)
				}
				if got != test.want {
					t.Errorf("exit code %d (%v), want %d", got, err, test.want)
				}
				if got := strings.Count(out.String(), "Pod shop/web"); got != test.lines {
					t.Errorf("%d explanations, want %d: %s", got, test.lines, out.String())
				}
			})
		})
	}
}

// An interrupt ends a watch as a timeout does.
func TestFollow_Interrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		err := (&explainCommand{until: true}).follow(ctx, new(bytes.Buffer), func(context.Context) (explain.Explanation, error) {
			return explain.Explanation{State: explain.StateNotReady}, nil
		})
		if code := exitError(0); !errors.As(err, &code) || code != exitNotReady {
			t.Errorf("got %v", err)
		}
	})
}
