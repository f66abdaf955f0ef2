package oracle

import (
	"bufio"
	"io"
	"slices"
	"strings"
)

// Step is one line of a program: an action, its pod, and its arguments.
type Step struct {
	Op   string
	Pod  string // "" for steps that are about no pod
	Args []string
}

func (s Step) String() string {
	words := []string{s.Op}
	if s.Pod != "" {
		words = append(words, s.Pod)
	}
	return strings.Join(append(words, s.Args...), " ")
}

// has reports whether the step carries the word.
func (s Step) has(word string) bool { return slices.Contains(s.Args, word) }

// arg returns the i-th word, "" if there are fewer.
func (s Step) arg(i int) string {
	if i < len(s.Args) {
		return s.Args[i]
	}
	return ""
}

// value returns what follows "key=" among the words, "" if nothing does.
func (s Step) value(key string) string {
	for _, word := range s.Args {
		if value, ok := strings.CutPrefix(word, key+"="); ok {
			return value
		}
	}
	return ""
}

// values returns what follows each "key=", in order.
func (s Step) values(key string) []string {
	var all []string
	for _, word := range s.Args {
		if value, ok := strings.CutPrefix(word, key+"="); ok {
			all = append(all, value)
		}
	}
	return all
}

// Program is what both managers are put through.
type Program []Step

func (p Program) String() string {
	var b strings.Builder
	for _, step := range p {
		b.WriteString(step.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// podless are the steps that name no pod.
var podless = []string{"settle", "sleep", "watch", "down", "up", "lose", "orphans"}

// ParseProgram reads a program, one step a line. Empty lines and lines that begin with #
// are left out.
func ParseProgram(r io.Reader) (Program, error) {
	var program Program
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		step := Step{Op: words[0]}
		words = words[1:]
		if !slices.Contains(podless, step.Op) && len(words) > 0 {
			step.Pod, words = words[0], words[1:]
		}
		step.Args = words
		program = append(program, step)
	}
	return program, lines.Err()
}
