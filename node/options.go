package node

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
)

// Options configure a [Node]. Client and Name are required; the rest has defaults.
type Options struct {
	// Client acts as system:node:NAME, under the Node authorizer and NodeRestriction.
	Client kubernetes.Interface
	// Name is the name of the Node object.
	Name string

	// Labels are put on the Node besides hostname, os and arch. NodeRestriction lets a
	// node set only some labels of the kubernetes.io domains.
	Labels map[string]string
	// Taints are set when the Node is created. A node may not change its taints later.
	Taints []v1.Taint
	// Addresses are the node's IP addresses; found on the machine if empty.
	Addresses []string
	// MaxPods is the capacity in pods; 110 if zero.
	MaxPods int
	// Reserved is kept back from allocatable, besides what the thresholds keep free.
	Reserved v1.ResourceList
	// Version is that of the program, shown as part of the node's version.
	Version string
	// RuntimeVersion names what runs the pods, as NAME://VERSION.
	RuntimeVersion string
	// Port is where this node answers requests of the API server; 0 if nowhere.
	Port int32

	// Thresholds decide about pressure; [DefaultThresholds] if zero.
	Thresholds Thresholds
	// Disk is a path on the file system whose space counts; "/" if empty.
	Disk string
	// Read reads the machine; [ReadMachine] of Disk if nil.
	Read func() (Reading, error)
	// Pressure, if set, says which of MemoryPressure, DiskPressure and PIDPressure are true
	// in place of the thresholds, which then count for what is allocatable, and for process
	// IDs. It must be quick.
	Pressure func() []v1.NodeConditionType
	// Ready says why the node is not ready, nil if it is. Ready if nil.
	Ready func() error

	// Interval is how often machine and Node are looked at; 10 s if zero.
	Interval time.Duration
	// Report is how old a status may get that does not change; 5 min if zero.
	Report time.Duration
	// Lease is how long the lease lasts; it is renewed four times as often. 40 s if zero.
	Lease time.Duration

	// Logger is slog.Default() if nil.
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	o.MaxPods = cmp.Or(o.MaxPods, 110)
	o.RuntimeVersion = cmp.Or(o.RuntimeVersion, "statusd://unknown")
	o.Thresholds = cmp.Or(o.Thresholds, DefaultThresholds())
	o.Disk = cmp.Or(o.Disk, "/")
	o.Interval = cmp.Or(o.Interval, 10*time.Second)
	o.Report = cmp.Or(o.Report, 5*time.Minute)
	o.Lease = cmp.Or(o.Lease, 40*time.Second)
	if o.Read == nil {
		disk := o.Disk
		o.Read = func() (Reading, error) { return ReadMachine(disk) }
	}
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// Validate says everything that is wrong with the options, in words for an operator.
func (o *Options) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("node: "+format, args...)) }
	if o.Client == nil {
		wrong("no client")
	}
	if reasons := validation.IsDNS1123Subdomain(o.Name); len(reasons) > 0 {
		wrong("name %q: %s", o.Name, strings.Join(reasons, "; "))
	}
	for _, e := range metav1validation.ValidateLabels(o.Labels, field.NewPath("labels")) {
		wrong("%v", e)
	}
	for _, key := range slices.Sorted(maps.Keys(o.Labels)) {
		if !MayLabel(key) {
			wrong("label %s: the API server lets no node give it to itself; have an administrator set it, or use a prefix of your own or node.kubernetes.io/", key)
		}
	}
	for _, t := range o.Taints {
		if len(validation.IsQualifiedName(t.Key)) > 0 || !slices.Contains([]v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute}, t.Effect) {
			wrong("taint %q: want KEY[=VALUE]:EFFECT with effect NoSchedule, PreferNoSchedule or NoExecute", t.ToString())
		}
	}
	for _, a := range o.Addresses {
		if net.ParseIP(a) == nil {
			wrong("address %q is not an IP address", a)
		}
	}
	for name, q := range o.Reserved {
		if !MayReserve(name) {
			wrong("reserved %s: a node has no such resource", name)
		}
		if q.Sign() < 0 {
			wrong("reserved %s is negative", name)
		}
	}
	if o.MaxPods < 0 || o.Interval < 0 || o.Report < 0 || o.Lease < 0 {
		wrong("max pods and periods must not be negative")
	}
	if o.Lease > 0 && (o.Lease < time.Second || o.Lease%time.Second != 0) {
		wrong("lease of %v: want whole seconds", o.Lease)
	}
	return errors.Join(append(errs, o.Thresholds.validate())...)
}

// MayLabel reports whether NodeRestriction lets a node set a label on itself.
func MayLabel(key string) bool {
	prefix, _, found := strings.Cut(key, "/")
	if !found || !inDomain(prefix, "kubernetes.io") && !inDomain(prefix, "k8s.io") {
		return true
	}
	if inDomain(prefix, v1.LabelNamespaceSuffixKubelet) || inDomain(prefix, v1.LabelNamespaceSuffixNode) {
		return true
	}
	switch key {
	case v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
		v1.LabelInstanceType, v1.LabelInstanceTypeStable, v1.LabelOSStable, v1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch":
		return true
	}
	return false
}

// MayReserve reports whether a node of this package has a resource of which some can be reserved.
func MayReserve(name v1.ResourceName) bool {
	switch name {
	case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourcePods:
		return true
	}
	return false
}

func inDomain(name, domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) }

// labels are those that the Node should have because of us.
func (o *Options) labels() map[string]string {
	labels := map[string]string{
		v1.LabelHostname:   o.Name, // as the kubelet with --hostname-override: two nodes on one machine differ
		v1.LabelOSStable:   runtime.GOOS,
		v1.LabelArchStable: runtime.GOARCH,
	}
	maps.Copy(labels, o.Labels)
	return labels
}
