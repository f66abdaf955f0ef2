package scenes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/test/stock"
)

// Scene is a fault and the audit's expected report.
type Scene struct {
	Name string
	// What describes the fault.
	What string
	// Expect is the drift that must be seen; empty: none may be.
	Expect []Drift
	// Allow is drift that follows from it and may be seen, too.
	Allow []audit.Kind
	// Silent is the side that must be reported as not answering; empty: all must answer.
	Silent audit.Side

	// Prepare makes what the scene needs; all is calm afterwards.
	Prepare func(context.Context, *Stage) error
	// Break does what goes wrong.
	Break func(context.Context, *Stage) error
	// During goes on doing it, until the scene is over.
	During func(context.Context, *Stage) error
	// Until returns nil when the scene has lasted long enough, beside Expect and Silent; nil: at once.
	Until func(context.Context, *Stage) error
	// Mend undoes it; all is calm afterwards. nil: it mends itself.
	Mend func(context.Context, *Stage) error
	// Observer makes the observer of the scene; nil: the stage's observer.
	Observer func(*Stage) *Observer
}

// Drift names a difference that is drift.
type Drift struct {
	Kind      audit.Kind
	Pod       string // namespace/name, empty for the node
	Container string
	Writer    string
}

func (d Drift) String() string {
	words := []string{string(d.Kind)}
	if d.Pod != "" {
		words = append(words, d.Pod)
	}
	if d.Container != "" {
		words = append(words, "container "+d.Container)
	}
	if d.Writer != "" {
		words = append(words, "by "+d.Writer)
	}
	return strings.Join(words, " ")
}

// Result is how a scene went.
type Result struct {
	Scene Scene
	// Seen is the drift reported between Break and Mend, and how long after Break.
	Seen map[Drift]time.Duration
	// Silent is how long after Break the side was reported as silent.
	Silent time.Duration
	// Cleared is how long after Mend all was calm again.
	Cleared time.Duration
	// Wrong has the failed expectations.
	Wrong []string
}

// Play plays a scene. An error means that the stage failed; false reports of the audit are in the
// result.
func (s *Stage) Play(ctx context.Context, scene Scene) (Result, error) {
	result, err := s.play(ctx, scene)
	if err != nil {
		err = fmt.Errorf("scene %q: %w", scene.Name, err)
	}
	return result, err
}

func (s *Stage) play(ctx context.Context, scene Scene) (Result, error) {
	result := Result{Scene: scene}
	observer := func() *Observer {
		if scene.Observer != nil {
			return scene.Observer(s)
		}
		return s.Observer
	}
	if err := s.renew(ctx); err != nil {
		return result, err
	}
	if scene.Prepare != nil {
		if err := scene.Prepare(ctx, s); err != nil {
			return result, err
		}
	}
	if err := s.calm(ctx, s.Observer); err != nil {
		return result, err
	}
	s.seen = sightings{}
	begin := time.Now()
	if err := scene.Break(ctx, s); err != nil {
		return result, err
	}
	if err := stock.Await(ctx, func() error { return s.over(ctx, scene, observer(), begin, &result) }); err != nil {
		return result, err
	}
	result.Seen = s.seen.since(begin)
	mended := time.Now()
	if scene.Mend != nil {
		if err := scene.Mend(ctx, s); err != nil {
			return result, err
		}
	}
	if err := s.calm(ctx, s.Observer); err != nil {
		return result, err
	}
	result.Cleared = time.Since(mended)
	if err := s.cleared(ctx); err != nil {
		return result, err
	}
	for drift := range s.seen.since(begin) {
		if !slices.Contains(scene.Expect, drift) && !slices.Contains(scene.Allow, drift.Kind) {
			result.Wrong = append(result.Wrong, fmt.Sprintf("unexpected drift: %s: %+v", drift, s.seen.first[drift].difference))
		}
	}
	return result, nil
}

// over returns nil when everything that the scene waits for has been seen.
func (s *Stage) over(ctx context.Context, scene Scene, o *Observer, begin time.Time, result *Result) error {
	if scene.During != nil {
		if err := scene.During(ctx, s); err != nil {
			return err
		}
	}
	report, err := s.look(ctx, o)
	if err != nil {
		return err
	}
	for _, want := range scene.Expect {
		if _, ok := s.seen.first[want]; !ok {
			return fmt.Errorf("not seen: %s; seen: %v", want, s.seen.since(begin))
		}
	}
	if scene.Silent != "" && result.Silent == 0 {
		if report.Sides[scene.Silent].Known() {
			return fmt.Errorf("side %s still answers", scene.Silent)
		}
		result.Silent = time.Since(begin)
	}
	if scene.Until != nil {
		return scene.Until(ctx, s)
	}
	return nil
}

// sightings are the first times that drift was seen.
type sightings struct{ first map[Drift]sighting }

type sighting struct {
	at         time.Time
	difference audit.Difference
}

func (s *sightings) add(report audit.Report, at time.Time) {
	if s.first == nil {
		s.first = map[Drift]sighting{}
	}
	for _, d := range report.Differences {
		drift := Drift{Kind: d.Kind, Container: d.Container, Writer: d.Writer}
		if d.Pod.Name != "" {
			drift.Pod = d.Pod.Namespace + "/" + d.Pod.Name
		}
		if _, old := s.first[drift]; d.Drift && !old {
			s.first[drift] = sighting{at, d}
		}
	}
}

// since is how long after begin each was seen.
func (s *sightings) since(begin time.Time) map[Drift]time.Duration {
	after := map[Drift]time.Duration{}
	for drift, first := range s.first {
		after[drift] = first.at.Sub(begin)
	}
	return after
}

// notYet is what a scene waits for.
func notYet(format string, args ...any) error { return fmt.Errorf(format, args...) }
