package scenes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/statusd/statusd/test/campaign"
)

// Table is how scenes went, in Markdown.
func Table(results []Result) string {
	var b strings.Builder
	b.WriteString("| scene | what is done | expected | seen | seconds until seen | seconds until clear |\n|---|---|---|---|---|---|\n")
	for _, r := range results {
		seen, after := r.seen()
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %.1f |\n", r.Scene.Name, r.Scene.What, r.Scene.expected(), seen, after, r.Cleared.Seconds())
	}
	return b.String()
}

// silent says that a side does not answer.
func silent(scene Scene) []string {
	if scene.Silent == "" {
		return nil
	}
	return []string{fmt.Sprintf("side %s silent", scene.Silent)}
}

func (s Scene) expected() string {
	words := silent(s)
	for _, drift := range s.Expect {
		words = append(words, drift.String())
	}
	if len(s.Expect) == 0 {
		words = append(words, "no drift")
	}
	return strings.Join(words, ", ")
}

// seen is the observations, and their times.
func (r Result) seen() (what, after string) {
	words := silent(r.Scene)
	var times []string
	if len(words) > 0 {
		times = append(times, seconds(r.Silent))
	}
	drifts := make([]Drift, 0, len(r.Seen))
	for drift := range r.Seen {
		drifts = append(drifts, drift)
	}
	slices.SortFunc(drifts, func(a, b Drift) int { return strings.Compare(a.String(), b.String()) })
	for _, drift := range drifts {
		words = append(words, drift.String())
		times = append(times, seconds(r.Seen[drift]))
	}
	if len(drifts) == 0 {
		words = append(words, "no drift")
	}
	for _, wrong := range r.Wrong {
		words = append(words, "**"+wrong+"**")
	}
	if len(times) == 0 {
		times = []string{"-"}
	}
	return strings.Join(words, ", "), strings.Join(times, ", ")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) }

// The tables of documents.
var (
	SceneMarks = campaign.Marks{Begin: "<!-- scenes: written by make observe-scenes -->", End: "<!-- end of scenes -->"}
	LieMarks   = campaign.Marks{Begin: "<!-- lies: written by make observe-lies -->", End: "<!-- end of lies -->"}
)
