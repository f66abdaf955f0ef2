package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// Script describes a simulation. The zero value is nodes of 32 CPUs whose pods run until they are deleted.
type Script struct {
	Nodes     Nodes      `json:"nodes"`
	Pods      []Rule     `json:"pods"`
	Outages   []Outage   `json:"outages"`
	Evictions []Eviction `json:"evictions"`
}

// Nodes configures all nodes.
type Nodes struct {
	Capacity v1.ResourceList   `json:"capacity"`
	Labels   map[string]string `json:"labels"`
	Taints   []v1.Taint        `json:"taints"`
}

// Rule describes the behavior of the matching pods.
type Rule struct {
	Match Match `json:"match"`
	Behavior
}

// Match selects pods. Empty fields match all.
type Match struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"` // a pattern, as web-*
	Labels    map[string]string `json:"labels"`
	Node      string            `json:"node"` // a pattern
	Share     Share             `json:"share"`
}

// Behavior is the life of a pod.
type Behavior struct {
	// Start is how long it takes until the containers run, and Jitter up to how much longer. Ready is how long it then takes until they are
	// ready.
	Start  Duration `json:"start"`
	Jitter Duration `json:"jitter"`
	Ready  Duration `json:"ready"`
	// Image is the reason why the image is not pulled, such as ErrImagePull; the containers then never run.
	Image string `json:"image"`
	// Runs is how long the containers run before they exit with ExitCode; zero: until the pod is deleted.
	Runs     Duration `json:"runs"`
	ExitCode int32    `json:"exitCode"`
	// FlapEvery is how often the pod loses its readiness, for FlapFor.
	FlapEvery Duration `json:"flapEvery"`
	FlapFor   Duration `json:"flapFor"`
	// Stop is how long the containers take to stop when the pod is deleted, at most its grace period.
	Stop Duration `json:"stop"`
}

// Outage is a time in which nodes do not work: they are silent, with neither lease nor reports, or report that they are not ready.
type Outage struct {
	Nodes string   `json:"nodes"` // a pattern
	Share Share    `json:"share"`
	At    Duration `json:"at"`
	For   Duration `json:"for"` // zero: to the end
	Kind  string   `json:"kind"`
}

// Eviction is a moment at which nodes evict pods.
type Eviction struct {
	Nodes   string   `json:"nodes"` // a pattern
	Pods    Match    `json:"pods"`
	At      Duration `json:"at"`
	Message string   `json:"message"`
}

// The kinds of an Outage.
const (
	Silent   = "silent"
	NotReady = "notReady"
)

// Duration is a time.Duration that is written as 1m30s.
type Duration time.Duration

// UnmarshalJSON reads a duration.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return errors.New("want a duration such as 90s or 1m30s")
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration; want a value such as 90s or 1m30s", text)
	}
	*d = Duration(parsed)
	return nil
}

// Share is a part of all, written as 5%. Zero and 100% are all.
type Share float64

// UnmarshalJSON reads a share.
func (s *Share) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return errors.New("want a share such as 5%")
	}
	number, found := strings.CutSuffix(text, "%")
	parsed, err := strconv.ParseFloat(number, 64)
	if err != nil || !found || parsed <= 0 || parsed > 100 {
		return fmt.Errorf("%q is not a share; want a value above 0%% and up to 100%%, such as 5%%", text)
	}
	*s = Share(parsed / 100)
	return nil
}

// Parse reads a script, YAML or JSON. A field that does not exist is an error.
func Parse(data []byte) (*Script, error) {
	var s Script
	if err := yaml.UnmarshalStrict(data, &s); err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return &s, nil
}

// Validate reports everything that is wrong with the script.
func (s *Script) Validate() error {
	var problems []error
	wrong := func(field, format string, args ...any) {
		problems = append(problems, fmt.Errorf("script: %s: %s", field, fmt.Sprintf(format, args...)))
	}
	pattern := func(field, p string) {
		if _, err := path.Match(p, ""); err != nil {
			wrong(field, "%q is not a pattern; want a value such as web-*", p)
		}
	}
	positive := func(field string, d Duration) {
		if d < 0 {
			wrong(field, "%v is negative", time.Duration(d))
		}
	}
	for i, r := range s.Pods {
		at := fmt.Sprintf("pods[%d].", i)
		pattern(at+"match.name", r.Match.Name)
		pattern(at+"match.node", r.Match.Node)
		for field, d := range map[string]Duration{"start": r.Start, "jitter": r.Jitter, "ready": r.Ready, "runs": r.Runs, "flapEvery": r.FlapEvery, "flapFor": r.FlapFor, "stop": r.Stop} {
			positive(at+field, d)
		}
		if (r.FlapEvery > 0) != (r.FlapFor > 0) || r.FlapFor > 0 && r.FlapFor >= r.FlapEvery {
			wrong(at+"flapFor", "flapEvery and flapFor go together, and flapFor is the shorter one")
		}
		if r.ExitCode != 0 && r.Runs == 0 {
			wrong(at+"exitCode", "the containers exit only if runs says when")
		}
		if r.ExitCode < 0 || r.ExitCode > 255 {
			wrong(at+"exitCode", "%d is not between 0 and 255", r.ExitCode)
		}
	}
	for i, o := range s.Outages {
		at := fmt.Sprintf("outages[%d].", i)
		pattern(at+"nodes", o.Nodes)
		positive(at+"at", o.At)
		positive(at+"for", o.For)
		if o.Kind != Silent && o.Kind != NotReady {
			wrong(at+"kind", "%q is not known; want %s or %s", o.Kind, Silent, NotReady)
		}
	}
	for i, e := range s.Evictions {
		at := fmt.Sprintf("evictions[%d].", i)
		pattern(at+"nodes", e.Nodes)
		pattern(at+"pods.name", e.Pods.Name)
		positive(at+"at", e.At)
	}
	return errors.Join(problems...)
}

// behaviors are those of --pods-as.
var behaviors = map[string]Behavior{
	"running":    {},
	"completing": {Runs: Duration(10 * time.Second)},
	"crashing":   {Runs: Duration(5 * time.Second), ExitCode: 1},
	"slow":       {Start: Duration(20 * time.Second), Jitter: Duration(20 * time.Second), Ready: Duration(10 * time.Second)},
	"flapping":   {FlapEvery: Duration(20 * time.Second), FlapFor: Duration(2 * time.Second)},
	"imageless":  {Image: "ErrImagePull"},
}

// Names are the names of --pods-as, for help and completion.
func Names() []string {
	return []string{"running", "completing", "crashing", "slow", "flapping", "imageless"}
}

// As returns the behavior of a name.
func As(name string) (Behavior, error) {
	b, ok := behaviors[name]
	if !ok {
		return b, fmt.Errorf("no behavior %q; want one of %s", name, strings.Join(Names(), ", "))
	}
	return b, nil
}

// capacity is the capacity of a node that the script does not mention.
func (s *Script) capacity() v1.ResourceList {
	list := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("32"), v1.ResourceMemory: resource.MustParse("256Gi"),
		v1.ResourceEphemeralStorage: resource.MustParse("1Ti"), v1.ResourcePods: resource.MustParse("250"),
	}
	for name, q := range s.Nodes.Capacity {
		list[name] = q
	}
	return list
}
