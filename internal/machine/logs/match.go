package logs

import (
	"regexp"
	"slices"
	"strings"
)

// rule is a Rule that is ready to be used.
type rule struct {
	Rule
	number int
	match  *regexp.Regexp
	clear  *regexp.Regexp // nil: the rule has no clear expression
	// Each match contains one of texts, and each match of clear one of clearTexts; empty: the texts are
	// unknown.
	texts, clearTexts []string
}

// searchable reports whether the lines that count can be found by texts.
func (r *rule) searchable() bool {
	return shortest(r.texts) >= shortestText && (r.clear == nil || shortest(r.clearTexts) >= shortestText)
}

func compile(rules []Rule) ([]rule, error) {
	compiled := make([]rule, len(rules))
	for i, r := range rules {
		if err := r.validate(); err != nil {
			return nil, err
		}
		compiled[i] = rule{Rule: r, number: i, match: regexp.MustCompile(r.Match), texts: literals(r.Match)}
		if r.Clear != "" {
			compiled[i].clear, compiled[i].clearTexts = regexp.MustCompile(r.Clear), literals(r.Clear)
		}
	}
	return compiled, nil
}

// found is the result of a rule on a line.
type found struct {
	*rule
	clears       bool
	pid, process string
}

// find returns what a line means by the rules of its origin: the first rule of each reason.
func find(rules []rule, origin Origin, text string) (list []found) {
	for i := range rules {
		r := &rules[i]
		if r.Origin != origin {
			continue
		}
		if m := submatch(r.match, r.texts, text); m != nil {
			if !slices.ContainsFunc(list, func(f found) bool { return f.Reason == r.Reason && !f.clears }) {
				list = append(list, found{rule: r, pid: group(r.match, m, "pid"), process: group(r.match, m, "process")})
			}
		} else if r.clear != nil && submatch(r.clear, r.clearTexts, text) != nil {
			list = append(list, found{rule: r, clears: true})
		}
	}
	return list
}

// submatch tries an expression on a line that has one of its texts: to search for these costs a hundredth.
func submatch(re *regexp.Regexp, texts []string, line string) []string {
	if len(texts) > 0 && !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(line, text) }) {
		return nil
	}
	return re.FindStringSubmatch(line)
}

func group(re *regexp.Regexp, match []string, name string) string {
	if i := re.SubexpIndex(name); i >= 0 {
		return match[i]
	}
	return ""
}
