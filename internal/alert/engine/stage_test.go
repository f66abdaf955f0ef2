package engine

import (
	"time"

	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/alert/ruletest/scene"
)

// testStart is when the timelines of tests begin.
var testStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// stage is a timeline over a scene.
type stage struct {
	*Timeline
	scene *scene.Scene
}

func newStage(set *ruleset.Set, start time.Time, outputs ...Output) *stage {
	s := scene.New(start)
	options := Options{Source: s, Audit: s, Set: set, Node: "node", Outputs: outputs}
	return &stage{NewTimeline(options, start, func(now time.Time) { s.Now = now }), s}
}

// take makes a step known and evaluates what it changes.
func (s *stage) take(step scene.Step) error {
	return s.Learn(testStart.Add(step.At), func() (News, error) {
		changed, err := s.scene.Take(step)
		return News{Changed: changed}, err
	})
}
