package eviction

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Signal is something that a machine can run out of.
type Signal string

// The signals, by the names that the kubelet's configuration has for them.
const (
	MemoryAvailable  Signal = "memory.available"
	NodeFSAvailable  Signal = "nodefs.available"
	NodeFSInodesFree Signal = "nodefs.inodesFree"
	PIDAvailable     Signal = "pid.available"
)

// Signals are all signals, those first that are acted on first.
func Signals() []Signal {
	return []Signal{MemoryAvailable, NodeFSAvailable, NodeFSInodesFree, PIDAvailable}
}

// Resources in the messages of evictions that are not resources of the API.
const (
	resourceInodes v1.ResourceName = "inodes"
	resourcePIDs   v1.ResourceName = "pids"
)

// resource is the name of the signal's resource, by which pods are ranked.
func (s Signal) resource() v1.ResourceName {
	switch s {
	case MemoryAvailable:
		return v1.ResourceMemory
	case NodeFSAvailable:
		return v1.ResourceEphemeralStorage
	case NodeFSInodesFree:
		return resourceInodes
	}
	return resourcePIDs
}

// condition is what the node shows while it is short.
func (s Signal) condition() v1.NodeConditionType {
	switch s {
	case MemoryAvailable:
		return v1.NodeMemoryPressure
	case PIDAvailable:
		return v1.NodePIDPressure
	}
	return v1.NodeDiskPressure
}

// format is the format of the signal's quantities.
func (s Signal) format() resource.Format {
	if s == MemoryAvailable || s == NodeFSAvailable {
		return resource.BinarySI
	}
	return resource.DecimalSI
}

// Amount is a number, or a share of the capacity. The zero Amount is nothing.
type Amount struct {
	Number uint64
	Share  float64 // of 1; counts if Number is 0
}

// Of returns the number of bytes, inodes or process IDs for a capacity.
func (a Amount) Of(capacity uint64) uint64 {
	if a.Number > 0 {
		return a.Number
	}
	return uint64(a.Share * float64(capacity))
}

// Threshold is how much must be left of something.
type Threshold struct {
	Signal Signal
	// Below is crossed when less than this is available.
	Below Amount
	// Grace is how long a soft threshold may be crossed; a hard one has none.
	Grace time.Duration
	// MinReclaim is how much more must be available before an eviction was enough.
	MinReclaim Amount
}

func (t *Threshold) hard() bool { return t.Grace == 0 }

// Config is how an operator writes thresholds, with the kubelet's names and values: a
// quantity as 100Mi, or a share as 10%.
type Config struct {
	// Hard and Soft are by signal. 0% and 100% switch a threshold off.
	Hard, Soft map[string]string
	// SoftGracePeriod is how long each soft threshold may be crossed, as 1m30s.
	SoftGracePeriod map[string]string
	// MinimumReclaim is by signal, for hard and soft thresholds.
	MinimumReclaim map[string]string
}

// DefaultHard are the hard thresholds of the kubelet.
func DefaultHard() map[string]string {
	return map[string]string{
		string(MemoryAvailable): "100Mi", string(NodeFSAvailable): "10%", string(NodeFSInodesFree): "5%",
	}
}

// Disabled returns hard thresholds that no machine crosses, to replace the default ones.
func Disabled() map[string]string {
	thresholds := DefaultHard()
	for signal := range thresholds {
		thresholds[signal] = "0%"
	}
	return thresholds
}

// Thresholds returns the thresholds of the config, hard thresholds first and by signal, or all that is wrong
// with it: each error begins with the name of the field.
func (c Config) Thresholds() ([]Threshold, error) {
	p := parser{}
	reclaims := p.amounts("minimumReclaim", c.MinimumReclaim)
	graces := p.graces(c.SoftGracePeriod)
	var all []Threshold
	for field, values := range map[string]map[string]string{"hard": c.Hard, "soft": c.Soft} {
		for signal, below := range p.amounts(field, values) {
			t := Threshold{Signal: signal, Below: below, MinReclaim: reclaims[signal]}
			if field == "soft" {
				if t.Grace = graces[signal]; t.Grace == 0 {
					p.wrong("soft", string(signal), "needs a softGracePeriod above zero")
				}
			}
			if below != (Amount{}) {
				all = append(all, t)
			}
		}
	}
	slices.SortFunc(all, compareThresholds)
	slices.SortFunc(p.problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return all, errors.Join(p.problems...)
}

// compareThresholds puts memory first, as the kubelet does, and of two for one signal the
// hard one.
func compareThresholds(a, b Threshold) int {
	order := Signals()
	if d := slices.Index(order, a.Signal) - slices.Index(order, b.Signal); d != 0 {
		return d
	}
	switch {
	case a.hard() == b.hard():
		return 0
	case a.hard():
		return -1
	}
	return 1
}

// parser collects problems.
type parser struct{ problems []error }

func (p *parser) wrong(field, key, why string) {
	p.problems = append(p.problems, fmt.Errorf("%s[%s]: %s", field, key, why))
}

// known reports whether a key is a signal.
func (p *parser) known(field, key string) bool {
	if slices.Contains(Signals(), Signal(key)) {
		return true
	}
	names := make([]string, 0, len(Signals()))
	for _, s := range Signals() {
		names = append(names, string(s))
	}
	p.wrong(field, key, "is not known; there are "+strings.Join(names, ", "))
	return false
}

func (p *parser) amounts(field string, values map[string]string) map[Signal]Amount {
	found := map[Signal]Amount{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !p.known(field, key) {
			continue
		}
		amount, err := parseAmount(values[key])
		if err != nil {
			p.wrong(field, key, err.Error())
			continue
		}
		found[Signal(key)] = amount
	}
	return found
}

// parseAmount reads 100Mi or 10%. Shares of 0 and 1 are no threshold at all.
func parseAmount(text string) (Amount, error) {
	if number, ok := strings.CutSuffix(text, "%"); ok {
		share, err := strconv.ParseFloat(number, 64)
		if err != nil || !(share >= 0 && share <= 100) {
			return Amount{}, fmt.Errorf("%q: want a share from 0%% to 100%%", text)
		}
		if share == 100 {
			share = 0
		}
		return Amount{Share: share / 100}, nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() <= 0 {
		return Amount{}, fmt.Errorf("%q: want a quantity above zero such as 100Mi, or a share such as 10%%", text)
	}
	return Amount{Number: uint64(q.Value())}, nil
}

func (p *parser) graces(values map[string]string) map[Signal]time.Duration {
	found := map[Signal]time.Duration{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !p.known("softGracePeriod", key) {
			continue
		}
		grace, err := time.ParseDuration(values[key])
		if err != nil || grace < 0 {
			p.wrong("softGracePeriod", key, fmt.Sprintf("%q: want a time such as 1m30s", values[key]))
			continue
		}
		found[Signal(key)] = grace
	}
	return found
}
