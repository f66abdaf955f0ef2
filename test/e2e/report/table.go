package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// WriteTable writes what happened on an agent as Markdown: the numbers, each spec that failed with its reason, and how many
// found that they cannot run here.
func WriteTable(w io.Writer, agent string, run *Run, reasons Reasons) {
	unexplained := reasons.Unexplained(run)
	fmt.Fprintf(w, "| agent | specs | passed | failed | of these unexplained | skipped by themselves | took |\n|---|--:|--:|--:|--:|--:|--:|\n")
	fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d | %s |\n", agent, len(run.Specs), run.Count(Passed), run.Count(Failed), len(unexplained),
		run.Count(Skipped), run.Took.Round(time.Second))
	for _, problem := range run.Problems {
		fmt.Fprintf(w, "\nThe suite itself failed: %s\n", line(problem))
	}
	if run.Count(Failed) > 0 {
		fmt.Fprintf(w, "\n| failed | why |\n|---|---|\n")
		for _, spec := range run.Specs {
			if spec.State == Failed {
				fmt.Fprintf(w, "| %s | %s |\n", spec.Name, why(spec, reasons))
			}
		}
	}
	if skipped := count(run); len(skipped) > 0 {
		fmt.Fprintf(w, "\n| skipped | because |\n|--:|---|\n")
		for _, s := range skipped {
			fmt.Fprintf(w, "| %d | %s |\n", s.specs, s.message)
		}
	}
}

func why(spec Spec, reasons Reasons) string {
	if reason := reasons.Of(spec.Name); reason != "" {
		return reason
	}
	return "**unexplained**: " + line(spec.Message)
}

type skips struct {
	specs   int
	message string
}

// count is how many specs were skipped for which reason, the most frequent first.
func count(run *Run) []skips {
	var found []skips
	for _, spec := range run.Specs {
		if spec.State != Skipped {
			continue
		}
		message := line(spec.Message)
		i := slices.IndexFunc(found, func(s skips) bool { return s.message == message })
		if i < 0 {
			found, i = append(found, skips{message: message}), len(found)
		}
		found[i].specs++
	}
	slices.SortStableFunc(found, func(a, b skips) int {
		if a.specs != b.specs {
			return b.specs - a.specs
		}
		return strings.Compare(a.message, b.message)
	})
	return found
}

// Difference is a spec that ended differently on two agents. An empty state: it was not part of the run.
type Difference struct {
	Name          string
	First, Second Spec
}

// Compare returns the specs that ended differently, by name.
func Compare(first, second *Run) []Difference {
	all := map[string]*Difference{}
	var names []string
	of := func(name string) *Difference {
		if all[name] == nil {
			all[name] = &Difference{Name: name}
			names = append(names, name)
		}
		return all[name]
	}
	for _, spec := range first.Specs {
		of(spec.Name).First = spec
	}
	for _, spec := range second.Specs {
		of(spec.Name).Second = spec
	}
	slices.Sort(names)
	var found []Difference
	for _, name := range names {
		if d := all[name]; d.First.State != d.Second.State {
			found = append(found, *d)
		}
	}
	return found
}

// WriteComparison writes the numbers of two agents and the specs that ended differently, as Markdown.
func WriteComparison(w io.Writer, names [2]string, runs [2]*Run) []Difference {
	fmt.Fprintf(w, "| agent | specs | passed | failed | skipped by themselves | took |\n|---|--:|--:|--:|--:|--:|\n")
	for i, run := range runs {
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %s |\n", names[i], len(run.Specs), run.Count(Passed), run.Count(Failed), run.Count(Skipped), run.Took.Round(time.Second))
	}
	differences := Compare(runs[0], runs[1])
	if len(differences) == 0 {
		fmt.Fprintf(w, "\nEach spec ended the same on both.\n")
		return nil
	}
	fmt.Fprintf(w, "\n| spec | %s | %s |\n|---|---|---|\n", names[0], names[1])
	for _, d := range differences {
		fmt.Fprintf(w, "| %s | %s | %s |\n", d.Name, ending(d.First), ending(d.Second))
	}
	return differences
}

func ending(s Spec) string {
	switch {
	case s.State == "":
		return "not run"
	case s.State == Passed || s.Message == "":
		return string(s.State)
	}
	return string(s.State) + ": " + line(s.Message)
}
