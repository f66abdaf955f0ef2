package logs

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Origin is the writer of a line.
type Origin string

// The origins.
const (
	Kernel       Origin = "kernel"
	KubeletLog   Origin = "kubelet"
	RuntimeLog   Origin = "runtime"
	ServiceState Origin = "systemd" // what systemd logs about the units of kubelet and runtime
)

var origins = []Origin{Kernel, KubeletLog, RuntimeLog, ServiceState}

// Severity is how bad a problem is.
type Severity string

// The severities.
const (
	Info    Severity = "info"
	Warning Severity = "warning"
	Error   Severity = "error"
)

// Rule gives a line a meaning.
type Rule struct {
	Origin Origin `yaml:"origin"`
	// Match is a regular expression. The groups pid and process name the process that was hit.
	Match string `yaml:"match"`
	// Reason is a word in CamelCase.
	Reason   string   `yaml:"reason"`
	Severity Severity `yaml:"severity"`
	// Condition is the Node condition that a line makes True until the machine is started again. Empty:
	// the problem is temporary.
	Condition string `yaml:"condition,omitempty"`
	// Clear is a regular expression of the lines that make the condition False again.
	Clear string `yaml:"clear,omitempty"`
	// Frequent makes a condition of lines that come often.
	Frequent *Frequent `yaml:"frequent,omitempty"`
}

// Frequent is true while there were at least Count lines within Within.
type Frequent struct {
	Condition string        `yaml:"condition"`
	Count     int           `yaml:"count"`
	Within    time.Duration `yaml:"within"`
}

type ruleFile struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Rules      []Rule `yaml:"rules"`
}

//go:embed rules.yaml
var defaultRules []byte

// DefaultRules are the rules that the package brings.
func DefaultRules() []Rule {
	rules, err := ParseRules("the default rules", defaultRules)
	if err != nil {
		panic(err) // a test reads them
	}
	return rules
}

// ParseRules reads a file of rules. Its error has all mistakes, with their places.
func ParseRules(name string, data []byte) ([]Rule, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var file ruleFile
	if err := dec.Decode(&file); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: the file is empty; want kind: LogRules", name)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := dec.Decode(new(ruleFile)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: the file has more than one YAML document; want one", name)
	}
	var problems []error
	if file.APIVersion != "statusd/v1alpha1" || file.Kind != "LogRules" {
		problems = append(problems, fmt.Errorf("%s: apiVersion %q, kind %q: want statusd/v1alpha1, LogRules", name, file.APIVersion, file.Kind))
	}
	for i := range file.Rules {
		if err := file.Rules[i].validate(); err != nil {
			problems = append(problems, fmt.Errorf("%s: rules[%d] (%s): %w", name, i, file.Rules[i].Reason, err))
		}
	}
	return file.Rules, errors.Join(problems...)
}

var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

func (r *Rule) validate() error {
	var problems []error
	if !isOrigin(r.Origin) {
		problems = append(problems, fmt.Errorf("origin %q: want one of %v", r.Origin, origins))
	}
	if !camelCase.MatchString(r.Reason) {
		problems = append(problems, fmt.Errorf("reason %q: want a word in CamelCase", r.Reason))
	}
	switch r.Severity {
	case Info, Warning, Error:
	default:
		problems = append(problems, fmt.Errorf("severity %q: want info, warning or error", r.Severity))
	}
	if r.Match == "" {
		problems = append(problems, errors.New("match is empty"))
	}
	for _, expression := range []string{r.Match, r.Clear} {
		if _, err := regexp.Compile(expression); err != nil {
			problems = append(problems, err)
		}
	}
	if r.Clear != "" && r.Condition == "" {
		problems = append(problems, errors.New("clear without a condition"))
	}
	for _, condition := range r.conditions() {
		if !camelCase.MatchString(condition) {
			problems = append(problems, fmt.Errorf("condition %q: want a word in CamelCase", condition))
		}
	}
	if f := r.Frequent; f != nil && (f.Count < 2 || f.Count > maxTimes || f.Within <= 0) {
		problems = append(problems, fmt.Errorf("frequent: want count of 2 to %d and within of more than 0", maxTimes))
	}
	return errors.Join(problems...)
}

// conditions are the Node conditions that a rule may set.
func (r *Rule) conditions() (list []string) {
	if r.Condition != "" {
		list = append(list, r.Condition)
	}
	if r.Frequent != nil {
		list = append(list, r.Frequent.Condition)
	}
	return list
}

func isOrigin(o Origin) bool {
	for _, known := range origins {
		if o == known {
			return true
		}
	}
	return false
}

// literals returns texts such that every match of an expression contains at least one, or nil if
// they are unknown. Lines are searched for the texts first, at a hundredth of the expression's cost.
// The texts contain no character that JSON escapes.
func literals(expression string) []string {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	return required(parsed.Simplify())
}

func required(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return nil
		}
		plain := strings.FieldsFunc(string(re.Rune), func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\\/<>&`, r) })
		var best []string
		for _, text := range plain {
			best = better(best, []string{text})
		}
		return best
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			best = better(best, required(sub))
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			texts := required(sub)
			if len(texts) == 0 {
				return nil
			}
			all = append(all, texts...)
		}
		return all
	}
	return nil
}

// better is the choice whose shortest text is longer, and so rarer.
func better(a, b []string) []string {
	if shortest(b) > shortest(a) {
		return b
	}
	return a
}

func shortest(texts []string) int {
	if len(texts) == 0 {
		return 0
	}
	return len(slices.MinFunc(texts, func(a, b string) int { return len(a) - len(b) }))
}
