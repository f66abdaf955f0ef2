package scene

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/alert/expr"
	"github.com/statusd/statusd/internal/alert/rulefile"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/podstatus"
)

// Scene is a node whose facts come from a test. It is an ordinary source, so that rules evaluate
// the same in a test as on a node.
type Scene struct {
	// Now is the time of the facts that the scene reports.
	Now   time.Time
	start time.Time
	pods  map[types.UID]*known
	gone  map[types.UID]*known
	node  any
	guard any
	seq   uint64
	step  time.Duration
}

// known has the facts of a pod.
type known struct {
	raw         any
	pod         *v1.Pod
	containers  map[string]explain.Container
	delivery    *podstatus.Delivery
	differences []audit.Difference
	records     []view.Record
	// accepted is what the parts of the step that are merged were.
	rawContainers, rawDelivery any
}

// New returns a scene that begins at an instant, without pods.
func New(start time.Time) *Scene {
	return &Scene{start: start, Now: start, pods: map[types.UID]*known{}, gone: map[types.UID]*known{}, node: map[string]any{}}
}

// Step has the facts that change at an instant. Each part is merged with the earlier facts.
type Step struct {
	// At is how long after the start it is.
	At time.Duration
	// The facts, by the keys of a step in a file of tests: pod, containers, delivery, differences, records, gone, node, kubelet, clock.
	What map[string]any
}

// Take makes a step known and returns the subjects that have changed: the UIDs of pods, and an empty one for the node.
func (s *Scene) Take(step Step) (changed []types.UID, err error) {
	s.step = 0
	if changed, err = s.take(step); err == nil {
		err = s.valid()
	}
	return changed, err
}

func (s *Scene) take(step Step) (changed []types.UID, err error) {
	s.Now = s.start.Add(step.At)
	what := instants(step.What, s.start).(map[string]any)
	if node, ok := what["node"]; ok {
		s.node = merge(s.node, node)
		changed = append(changed, "")
	}
	if kubelet, ok := what["kubelet"]; ok {
		s.guard = merge(s.guard, kubelet)
		changed = append(changed, "")
	}
	if _, ok := what["clock"]; ok { // with a sign it is no instant
		if s.step, err = parseJump(fmt.Sprint(step.What["clock"])); err != nil {
			return nil, fmt.Errorf("clock: %w", err)
		}
	}
	if gone, ok := what["gone"]; ok {
		uid, err := s.find(fmt.Sprint(gone))
		if err != nil {
			return nil, err
		}
		s.gone[uid] = s.pods[uid]
		delete(s.pods, uid)
		return append(changed, uid), nil
	}
	if _, ok := what["pod"]; !ok {
		for _, name := range []string{"containers", "delivery", "differences", "records"} {
			if _, ok := what[name]; ok {
				return nil, fmt.Errorf("%s needs pod, with its name", name)
			}
		}
		return changed, nil
	}
	uid, err := s.takePod(what)
	return append(changed, uid), err
}

// parseJump reads by how much a clock jumps: ahead, or with a - back.
func parseJump(source string) (time.Duration, error) {
	if back, ok := strings.CutPrefix(source, "-"); ok {
		d, err := rulefile.ParseDuration(back)
		return -d, err
	}
	return rulefile.ParseDuration(strings.TrimPrefix(source, "+"))
}

func (s *Scene) find(name string) (types.UID, error) {
	for uid, p := range s.pods {
		if p.pod.Name == name || p.pod.Namespace+"/"+p.pod.Name == name {
			return uid, nil
		}
	}
	return "", fmt.Errorf("there is no pod %s", name)
}

// nameOf is the namespace and name of a pod in a step.
func nameOf(pod any) (namespace, name string) {
	m, _ := pod.(map[string]any)
	meta, _ := m["metadata"].(map[string]any)
	namespace, _ = meta["namespace"].(string)
	name, _ = meta["name"].(string)
	return cmp.Or(namespace, "default"), name
}

func (s *Scene) takePod(what map[string]any) (types.UID, error) {
	namespace, name := nameOf(what["pod"])
	if name == "" {
		return "", fmt.Errorf("pod has no metadata.name")
	}
	uid := types.UID(namespace + "." + name)
	p := s.pods[uid]
	if p == nil {
		p = &known{}
	}
	next := *p
	next.raw = merge(p.raw, what["pod"])
	pod := &v1.Pod{}
	if err := Strictly(next.raw, pod); err != nil {
		return "", fmt.Errorf("pod: %w", err)
	}
	s.complete(pod, p.pod, uid, namespace)
	next.pod = pod
	before := &v1.PodStatus{}
	if p.pod != nil {
		before = &p.pod.Status
	}
	next.records = slices.Clone(p.records)
	for _, r := range history.Diff(before, &pod.Status) {
		s.record(&next, r)
	}
	if err := s.takeFacts(&next, what); err != nil {
		return "", err
	}
	s.pods[uid] = &next
	return uid, nil
}

// takeFacts reads the facts of a pod in addition to its object.
func (s *Scene) takeFacts(p *known, what map[string]any) error {
	if v, ok := what["containers"]; ok {
		p.rawContainers, p.containers = merge(p.rawContainers, v), nil
		if err := Strictly(p.rawContainers, &p.containers); err != nil {
			return fmt.Errorf("containers: %w", err)
		}
	}
	if v, ok := what["delivery"]; ok {
		p.rawDelivery, p.delivery = merge(p.rawDelivery, v), &podstatus.Delivery{}
		if err := Strictly(p.rawDelivery, p.delivery); err != nil {
			return fmt.Errorf("delivery: %w", err)
		}
	}
	if v, ok := what["differences"]; ok {
		p.differences = nil
		if err := Strictly(v, &p.differences); err != nil {
			return fmt.Errorf("differences: %w", err)
		}
	}
	if v, ok := what["records"]; ok {
		var records []view.Record
		if err := Strictly(v, &records); err != nil {
			return fmt.Errorf("records: %w", err)
		}
		for _, r := range records {
			s.record(p, r)
		}
	}
	return nil
}

func (s *Scene) record(p *known, r view.Record) {
	s.seq++
	r.Seq = s.seq
	if r.Observed.IsZero() {
		r.Observed = s.Now
	}
	p.records = append(p.records, r)
}

// complete fills in what each pod has and a test need not say.
func (s *Scene) complete(pod, before *v1.Pod, uid types.UID, namespace string) {
	pod.UID, pod.Namespace, pod.Spec.NodeName = uid, namespace, cmp.Or(pod.Spec.NodeName, "node")
	if pod.CreationTimestamp.IsZero() {
		pod.CreationTimestamp = metav1.Time{Time: s.Now}
		if before != nil {
			pod.CreationTimestamp = before.CreationTimestamp
		}
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if !c.LastTransitionTime.IsZero() {
			continue
		}
		c.LastTransitionTime = metav1.Time{Time: s.Now}
		if before != nil {
			for _, old := range before.Status.Conditions {
				if old.Type == c.Type && old.Status == c.Status {
					c.LastTransitionTime = old.LastTransitionTime
				}
			}
		}
	}
	if len(pod.Spec.Containers) == 0 {
		for _, c := range pod.Status.ContainerStatuses {
			pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: c.Name, Image: c.Image})
		}
	}
	if len(pod.Spec.InitContainers) == 0 {
		for _, c := range pod.Status.InitContainerStatuses {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{Name: c.Name, Image: c.Image})
		}
	}
}

// UIDs and the following methods implement [view.Source].
func (s *Scene) UIDs() []types.UID {
	uids := make([]types.UID, 0, len(s.pods))
	for uid := range s.pods {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	return uids
}

func (s *Scene) Pod(uid types.UID) (view.Pod, bool) {
	p, ok := s.pods[uid]
	if !ok {
		return view.Pod{}, false
	}
	return view.Pod{Facts: explain.Facts{Now: s.Now, Pod: p.pod, Containers: p.containers, Delivery: p.delivery}}, true
}

func (s *Scene) Gone() []view.PodHistory { return nil }

func (s *Scene) History(namespace, name string) (view.PodHistory, bool) {
	if name == "" {
		return view.PodHistory{}, true
	}
	p, ok := s.pods[types.UID(namespace+"."+name)]
	if !ok {
		return view.PodHistory{}, false
	}
	return view.PodHistory{Ref: history.Ref{UID: p.pod.UID, Namespace: namespace, Name: name}, Records: p.records}, true
}

func (s *Scene) Node() (detail view.NodeDetail) {
	_ = Strictly(s.node, &detail) // it was decoded when it was taken
	detail.Differences = nil      // the audit has them
	return detail
}

func (s *Scene) Watch(ctx context.Context, _ func(types.UID)) error {
	<-ctx.Done()
	return nil
}

// Report and Pictures implement [view.AuditSource].
func (s *Scene) Report() audit.Report {
	r := audit.Report{At: s.Now}
	for _, uid := range s.UIDs() {
		for _, d := range s.pods[uid].differences {
			d.Pod = audit.Ref{UID: uid, Namespace: s.pods[uid].pod.Namespace, Name: s.pods[uid].pod.Name}
			r.Differences = append(r.Differences, d)
		}
	}
	var node struct {
		Differences []audit.Difference          `json:"differences"`
		Sides       map[audit.Side]audit.Answer `json:"sides"`
	}
	if m, ok := s.node.(map[string]any); ok {
		_ = Strictly(map[string]any{"differences": m["differences"], "sides": m["sides"]}, &node)
	}
	r.Sides = node.Sides
	r.Differences = append(r.Differences, node.Differences...)
	return r
}

func (s *Scene) Pictures(types.UID) []audit.Picture { return nil }

// ClockStep is how far the clock of the node has jumped in the last step.
func (s *Scene) ClockStep() time.Duration { return s.step }

// Guard reports the health of the kubelet; nil: no step has facts about the kubelet.
func (s *Scene) Guard() view.GuardSource {
	if s.guard == nil {
		return nil
	}
	return kubeletGuard{s}
}

type kubeletGuard struct{ *Scene }

// kubeletWords are a test's facts of the kubelet: the guard's report, and numbers.
type kubeletWords struct {
	guard.Report
	Running                  *bool      `json:"running"`
	PLEG                     string     `json:"plegDuration"`
	PLEGLastSeen             *time.Time `json:"plegLastSeen"`
	PodStart                 string     `json:"podStartDuration"`
	ClientCertificate        *time.Time `json:"clientCertificateExpires"`
	ServerCertificate        *time.Time `json:"serverCertificateExpires"`
	CertificateRenewalErrors *int       `json:"certificateRenewalErrors"`
	RuntimeErrors            *float64   `json:"runtimeErrors"`
}

func (s *Scene) kubelet() (words kubeletWords, err error) {
	if s.guard != nil {
		err = Strictly(s.guard, &words)
	}
	return words, err
}

// Report implements [view.GuardSource].
func (g kubeletGuard) Report() guard.Report {
	words, _ := g.kubelet()
	return words.Report
}

// Kubelet returns the numbers about the kubelet.
func (s *Scene) Kubelet() expr.KubeletFacts {
	words, _ := s.kubelet()
	f := expr.KubeletFacts{Running: words.Running, PLEGLastSeen: words.PLEGLastSeen, ClientCertificate: words.ClientCertificate,
		ServerCertificate: words.ServerCertificate, CertificateErrors: words.CertificateRenewalErrors, RuntimeErrors: words.RuntimeErrors}
	if d, err := rulefile.ParseDuration(words.PLEG); err == nil {
		f.PLEG = &d
	}
	if d, err := rulefile.ParseDuration(words.PodStart); err == nil {
		f.PodStart = &d
	}
	return f
}

// valid returns the problems of a test's facts of the node and the kubelet.
func (s *Scene) valid() error {
	var detail view.NodeDetail
	if err := Strictly(s.node, &detail); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	words, err := s.kubelet()
	if err != nil {
		return fmt.Errorf("kubelet: %w", err)
	}
	for _, d := range []string{words.PLEG, words.PodStart} {
		if _, err := rulefile.ParseDuration(d); d != "" && err != nil {
			return fmt.Errorf("kubelet: %w", err)
		}
	}
	return nil
}
