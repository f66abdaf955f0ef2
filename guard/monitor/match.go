package monitor

import (
	"bytes"
	"regexp"
	"slices"
)

// rule is a Rule that is ready to be used.
type rule struct {
	Rule
	number int
	match  *regexp.Regexp
	clear  *regexp.Regexp // nil: there is none
}

func compile(rules []Rule) ([]rule, error) {
	compiled := make([]rule, len(rules))
	for i, r := range rules {
		if err := r.validate(); err != nil {
			return nil, err
		}
		compiled[i] = rule{Rule: r, number: i, match: regexp.MustCompile(r.Match)}
		if r.Clear != "" {
			compiled[i].clear = regexp.MustCompile(r.Clear)
		}
	}
	return compiled, nil
}

// needles are the texts one of which is in each line that a rule may match, and whether that is
// known of all rules.
func needles(rules []rule) (list [][]byte, complete bool) {
	complete = true
	expect := func(expression string) {
		texts := literals(expression)
		if shortest(texts) < 4 { // too short to spare much
			complete = false
		}
		for _, text := range texts {
			list = append(list, []byte(text))
		}
	}
	for i := range rules {
		expect(rules[i].Match)
		if rules[i].clear != nil {
			expect(rules[i].Clear)
		}
	}
	list = append(list, companions...)
	slices.SortFunc(list, bytes.Compare)
	return slices.CompactFunc(list, bytes.Equal), complete
}

// candidates calls yield with those lines of a chunk, in order, that contain a needle; with all if the
// needles are not complete. A chunk ends with a line.
func candidates(chunk []byte, needles [][]byte, complete bool, yield func(line []byte)) {
	if !complete {
		for line := range bytes.Lines(chunk) {
			yield(bytes.TrimRight(line, "\r\n"))
		}
		return
	}
	var starts []int
	for _, needle := range needles {
		for from := 0; ; {
			i := bytes.Index(chunk[from:], needle)
			if i < 0 {
				break
			}
			at := from + i
			starts = append(starts, bytes.LastIndexByte(chunk[:at], '\n')+1)
			end := bytes.IndexByte(chunk[at:], '\n')
			if end < 0 {
				break
			}
			from = at + end + 1 // one hit per line is enough
		}
	}
	slices.Sort(starts)
	for _, start := range slices.Compact(starts) {
		line := chunk[start:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end]
		}
		yield(bytes.TrimRight(line, "\r"))
	}
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
		if m := r.match.FindStringSubmatch(text); m != nil {
			if !slices.ContainsFunc(list, func(f found) bool { return f.Reason == r.Reason && !f.clears }) {
				list = append(list, found{rule: r, pid: group(r.match, m, "pid"), process: group(r.match, m, "process")})
			}
		} else if r.clear != nil && r.clear.MatchString(text) {
			list = append(list, found{rule: r, clears: true})
		}
	}
	return list
}

func group(re *regexp.Regexp, match []string, name string) string {
	if i := re.SubexpIndex(name); i >= 0 {
		return match[i]
	}
	return ""
}
