package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// State is how a spec ended.
type State string

// These are the states of a [Spec].
const (
	Passed  State = "passed"
	Failed  State = "failed"
	Skipped State = "skipped" // the spec itself found that it cannot run here
)

// Spec is a selected spec.
type Spec struct {
	Name    string
	State   State
	Message string // why it failed, or was skipped
	Took    time.Duration
}

// Run is a run of specs on an agent.
type Run struct {
	Specs []Spec // by name
	// Problems are failures outside of specs: the suite could not be set up, or was interrupted.
	Problems []string
	Took     time.Duration
}

// ginkgoSuite is the needed part of Ginkgo's report in JSON.
type ginkgoSuite struct {
	SuiteSucceeded             bool
	SpecialSuiteFailureReasons []string
	RunTime                    time.Duration
	SpecReports                []struct {
		ContainerHierarchyTexts []string
		LeafNodeType            string
		LeafNodeText            string
		State                   string
		RunTime                 time.Duration
		Failure                 struct{ Message string }
	}
}

// Read reads Ginkgo's report in JSON. Specs that were not selected are left out.
func Read(file string) (*Run, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var suites []ginkgoSuite
	if err := json.Unmarshal(content, &suites); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	run := &Run{}
	for _, suite := range suites {
		run.add(suite)
	}
	slices.SortFunc(run.Specs, func(a, b Spec) int { return cmp.Compare(a.Name, b.Name) })
	return run, nil
}

func (r *Run) add(suite ginkgoSuite) {
	r.Took += suite.RunTime
	r.Problems = append(r.Problems, suite.SpecialSuiteFailureReasons...)
	for _, s := range suite.SpecReports {
		spec := Spec{Message: strings.TrimSpace(s.Failure.Message), Took: s.RunTime}
		spec.Name = strings.Join(append(slices.Clone(s.ContainerHierarchyTexts), s.LeafNodeText), " ")
		switch s.State {
		case "passed":
			spec.State = Passed
		case "pending":
			continue
		case "skipped":
			if spec.Message == "" {
				continue // not selected, or not reached
			}
			spec.State = Skipped
		default: // failed, panicked, interrupted, timedout, aborted
			spec.State = Failed
			if spec.Message == "" {
				spec.Message = s.State
			}
		}
		if s.LeafNodeType == "It" {
			r.Specs = append(r.Specs, spec)
		} else if spec.State == Failed {
			r.Problems = append(r.Problems, strings.TrimSpace(s.LeafNodeType+" "+s.LeafNodeText)+": "+spec.Message)
		}
	}
}

// Count returns how many specs ended so.
func (r *Run) Count(s State) int {
	count := 0
	for _, spec := range r.Specs {
		if spec.State == s {
			count++
		}
	}
	return count
}

// line is the first line of a text that has anything in it, cut to a length for a table.
func line(text string) string {
	const width = 160
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); l != "" {
			if runes := []rune(l); len(runes) > width {
				l = string(runes[:width]) + "…"
			}
			return strings.ReplaceAll(l, "|", `\|`)
		}
	}
	return ""
}
