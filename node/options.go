package node

import (
	"cmp"
	"context"
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
	// Leases, if set, renews the lease in place of Client: on a separate connection a renewal does not wait for other
	// requests.
	Leases kubernetes.Interface
	// Watched returns the newest copy of the Node from a watch of the program, for programs with many Nodes. It replaces a GET every
	// Interval. Nil: the Node is read from the API server. Watched must not block; its result is not modified.
	Watched func() *v1.Node
	// Turn and LeaseTurn are called before each request for the Node and for its lease, and block until the request may be sent, for programs
	// with many Nodes: a slow API server that gets all requests at once answers none of them before the timeout. The timeout begins when Turn
	// or LeaseTurn returns; done is called when the request has ended. Nil: requests do not wait.
	Turn, LeaseTurn func(ctx context.Context) (done func(), err error)

	// Labels are set on the Node besides hostname, os and arch. NodeRestriction lets a node set
	// only some labels of the kubernetes.io domains.
	Labels map[string]string
	// Taints are set when the Node is created. A node may not change its taints later.
	Taints []v1.Taint
	// Addresses are the node's IP addresses; read from the machine if empty.
	Addresses []string
	// MaxPods is the capacity in pods; 110 if zero.
	MaxPods int
	// Reserved is subtracted from allocatable, in addition to the thresholds.
	Reserved v1.ResourceList
	// Version is the version of the program, a part of the node's version.
	Version string
	// RuntimeVersion names what runs the pods, as NAME://VERSION.
	RuntimeVersion string

	// Port is the port of the kubelet's API of this node, to which the API server connects for kubectl logs
	// and exec; zero if the API is not served.
	Port int32

	// Thresholds define pressure; [DefaultThresholds] if zero.
	Thresholds Thresholds
	// Disk is a path on the file system whose space is measured; "/" if empty.
	Disk string
	// Read reads the machine; [ReadMachine] of Disk if nil.
	Read func() (Reading, error)
	// Pressure, if set, returns which of MemoryPressure, DiskPressure and PIDPressure are true, in
	// place of the thresholds. The thresholds then apply to allocatable and to process IDs only.
	// Pressure must not block.
	Pressure func() []v1.NodeConditionType
	// Ready returns why the node is not ready, or nil if the node is ready. A nil function means
	// always ready.
	Ready func() error
	// Images lists the container images of the node, the largest first; if nil, no images are reported. It must not
	// block.
	Images func() []v1.ContainerImage

	// Configure changes the Node before it is compared with the API's and written, each Interval: capacity (extended
	// resources too) and allocatable, operating system, architecture, spec.providerID, labels, annotations, addresses,
	// and additional conditions. Fields that Configure does not change follow the other options. The API server
	// accepts a provider ID once and taints only with the first write, and NodeRestriction refuses some labels.
	// Configure must not block.
	Configure func(*v1.Node)

	// Instance identifies this program among all that could have the name of the Node, such as a hash of the machine's ID and the
	// program's state directory; it stays the same when the program is restarted. If set, the Node of another kubelet or agent is left alone
	// until its lease was not renewed for half of its duration: see [Node.Claimed]. Empty: the Node is used at once.
	Instance string
	// InstanceEnded reports whether another instance, which has run since the last start of this machine, was one of this machine and has
	// ended: then nothing waits. Nil: that is unknown.
	InstanceEnded func(instance string) bool

	// Memory, if set, is the state that outlives this Node: see [Memory].
	Memory *Memory

	// Event, if set, receives the events of the Node. It must not block.
	Event func(eventType, reason, message string)

	// Interval is how often the machine and the Node are read; 10 s if zero.
	Interval time.Duration
	// Report is how often an unchanged status is sent; 5 min if zero.
	Report time.Duration
	// Lease is the duration of the lease, 40 s if zero. The lease is renewed every quarter of the duration, the second time at a
	// random moment, so that nodes that start together do not renew together.
	Lease time.Duration

	// Logger defaults to a logger that discards everything.
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

// Validate returns all errors in the options, worded for an operator.
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

// labels returns the labels that this program sets on the Node.
func (o *Options) labels() map[string]string {
	labels := map[string]string{
		v1.LabelHostname:   o.Name, // as the kubelet with --hostname-override: two nodes on one machine differ
		v1.LabelOSStable:   runtime.GOOS,
		v1.LabelArchStable: runtime.GOARCH,
	}
	maps.Copy(labels, o.Labels)
	return labels
}
