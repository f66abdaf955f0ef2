package node

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
)

// Options configure a [Node]. Client and Name are required; the rest has defaults.
type Options struct {
	// Client acts as system:node:NAME, under the Node authorizer and NodeRestriction.
	Client kubernetes.Interface
	// Name is the name of the Node object.
	Name string
	// Leases renews the lease in place of Client, if set: on a connection of its own a renewal waits for no other request.
	Leases kubernetes.Interface
	// Watched returns the newest copy of the Node that a watch of the program has delivered, for programs that keep many Nodes. It is
	// looked at in place of a request each Interval; nil: the API server is asked. It must be quick, and what it returns is not changed.
	Watched func() *v1.Node

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

	// Port is where the kubelet's API of this node is served, zero if it is not. The API server connects to it
	// for kubectl logs and exec.
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
	// Images lists the container images that the node has, the largest first; none are reported if nil. It must be quick.
	Images func() []v1.ContainerImage

	// Configure changes the Node before it is compared with the API's and written, at each look: capacity (extended
	// resources too) and allocatable, operating system, architecture, spec.providerID, labels, annotations, addresses,
	// and conditions of one's own. What it leaves alone is as the other options say. The API server takes a provider ID
	// once and taints only from the first write, and NodeRestriction refuses some labels. It must be quick.
	Configure func(*v1.Node)

	// Memory is what outlives this value, if set: see [Memory].
	Memory *Memory

	// Event takes the events of the Node, if set. It must not block.
	Event func(eventType, reason, message string)

	// Interval is how often machine and Node are looked at; 10 s if zero.
	Interval time.Duration
	// Report is how old a status may get that does not change; 5 min if zero.
	Report time.Duration
	// Lease is how long the lease lasts; it is renewed four times as often, the second time at a random moment, so that nodes which
	// start together do not renew together. 40 s if zero.
	Lease time.Duration

	// Logger defaults to one that discards everything.
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	o.MaxPods = cmp.Or(o.MaxPods, 110)
	if o.Leases == nil {
		o.Leases = o.Client
	}
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
	if o.Event == nil {
		o.Event = func(string, string, string) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
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
	for _, key := range slices.Sorted(maps.Keys(o.Labels)) {
		if err := CheckLabel(key, o.Labels[key]); err != nil {
			wrong("label %s: %w", key, err)
		}
	}
	for _, t := range o.Taints {
		if err := CheckTaint(t); err != nil {
			wrong("taint %w", err)
		}
	}
	for _, a := range o.Addresses {
		if err := CheckAddress(a); err != nil {
			wrong("address %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Reserved)) {
		if err := CheckReserved(name, o.Reserved[name]); err != nil {
			wrong("reserved %s: %w", name, err)
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
