package audit_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/podstatus"
)

// TestStories reads what each side says, one line per side and pod, lets an auditor look at it for a while,
// and writes what it reports:
//
//	node WORD…                          how the node is; see storyNode
//	pod NAME CONTAINER,… KEY=VALUE…     the spec; see storyPod
//	api|kubelet NAME PHASE [ready] CONTAINER=STATE:ID[:RESTARTS[:CODE]]… [by=WRITER:FIELD]
//	runtime NAME CONTAINER=STATE:ID[:ATTEMPT[:CODE[:AGO]]]…
//	machine NAME mount=PATH volume=PATH processes=NUMBER
//
// The commands are audit for=DURATION and pictures pod=NAME.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s := newStory()
			for line := range strings.SplitSeq(d.Input, "\n") {
				if err := s.line(words(line)); err != nil {
					d.Fatalf(t, "%q: %v", line, err)
				}
			}
			switch d.Cmd {
			case "audit":
				var length string
				d.ScanArgs(t, "for", &length)
				return s.audit(length)
			case "pictures":
				var name string
				d.ScanArgs(t, "pod", &name)
				return s.pictures(name)
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

// storyNow is when a story is audited; it has lasted for as long as the sides say.
var storyNow = epoch.Add(30 * time.Minute)

type story struct {
	facts   audit.Facts
	pods    map[string]*v1.Pod
	changes func(time.Time, *audit.Facts)
	noLease bool
}

// change is applied to the facts of each instant.
func (s *story) change(c func(time.Time, *audit.Facts)) { s.changes = c }

func words(line string) []string { return strings.Fields(line) }

func newStory() *story {
	s := &story{pods: map[string]*v1.Pod{}}
	f := &s.facts
	f.Node = simName
	since := storyNow.Add(-time.Hour)
	f.APIAnswer = audit.Answer{From: "https://api:6443", Since: since}
	f.KubeletAnswer = audit.Answer{From: "https://n1:10250/pods", Since: since}
	f.RuntimeAnswer = audit.Answer{From: "unix:///run/containerd/containerd.sock", Since: since}
	f.MachineAnswer = audit.Answer{From: "/var/lib/kubelet", Since: since}
	f.APIPods, f.KubeletPods = map[types.UID]audit.Sighting{}, map[types.UID]audit.Sighting{}
	f.Sandboxes, f.Containers = map[string]audit.Sandbox{}, map[string]audit.Container{}
	f.PodDirs, f.Cgroups = map[types.UID]audit.PodDir{}, map[types.UID]audit.Cgroup{}
	f.ManifestsKnown = true
	f.Process = &audit.Process{PID: 812, Started: since}
	f.NodeObject = &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}}
	f.NodeAt = since
	return s
}

func ago(text string) time.Time {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return storyNow.Add(-d)
}

func (s *story) line(words []string) error {
	if len(words) == 0 {
		return nil
	}
	switch words[0] {
	case "node":
		for _, w := range words[1:] {
			s.storyNode(w)
		}
	case "pod":
		s.storyPod(words[1], words[2], words[3:])
	case "api", "kubelet":
		return s.status(words[0], words[1], words[2:])
	case "runtime":
		return s.runtime(words[1], words[2:])
	case "machine":
		s.machine(words[1], words[2:])
	default:
		return fmt.Errorf("unknown word %q", words[0])
	}
	return nil
}

func (s *story) storyNode(word string) {
	f := &s.facts
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "own": // the kubelet shows its own statuses
		f.KubeletStatuses = true
	case "silent": // silent=SIDE: it does not answer
		a := map[string]*audit.Answer{"api": &f.APIAnswer, "kubelet": &f.KubeletAnswer, "runtime": &f.RuntimeAnswer, "machine": &f.MachineAnswer}[value]
		a.Err, a.Since, a.Silent, a.At = "connection refused", time.Time{}, storyNow.Add(-5*time.Minute), storyNow.Add(-5*time.Minute)
	case "stopped":
		f.Process.Stopped = true
	case "frozen": // the kubelet, by its control group
		f.Process.Frozen = true
	case "gone": // the kubelet's process
		f.Process, f.ProcessKnown = nil, true
	case "starting":
		f.Process.Started = storyNow
	case "lease": // renewed so long ago, and not since
		f.Lease = &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: ago(value)}}}
		f.LeaseAt = ago(value)
	case "leased": // renewed just now by a writer of this name
		f.Lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: value, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:leaseDurationSeconds":{},"f:renewTime":{}}}`)}}},
			Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: storyNow}}}
		f.LeaseAt = storyNow
	case "renewed": // renewed just now by another writer of this name, who has written nothing else of it
		s.storyNode("leased=kubelet")
		f.Lease.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{"f:leaseDurationSeconds":{}}}`)
		f.Lease.ManagedFields = append(f.Lease.ManagedFields, metav1.ManagedFieldsEntry{Manager: value, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:renewTime":{}}}`)})
	case "forged": // forged=FIELD:WRITER: renewed just now by the kubelet; the writer has overwritten renewTime with another day or the duration with a second
		field, writer, _ := strings.Cut(value, ":")
		s.storyNode("renewed=kubelet")
		f.Lease.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{"f:holderIdentity":{}}}`)
		second := int32(1)
		f.Lease.Spec.LeaseDurationSeconds = &second
		if field == "renewTime" {
			f.Lease.Spec.LeaseDurationSeconds, f.Lease.Spec.RenewTime = nil, &metav1.MicroTime{Time: ago("24h")}
		}
		f.Lease.ManagedFields = append(f.Lease.ManagedFields[:1], metav1.ManagedFieldsEntry{Manager: writer, Operation: metav1.ManagedFieldsOperationUpdate,
			Time: &metav1.Time{Time: ago("1s")}, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:` + field + `":{}}}`)})
	case "clock": // the server's is so far ahead
		f.Clock, _ = time.ParseDuration(value)
		f.ClockError = 30 * time.Millisecond
		f.ClockAt = storyNow
	case "unknown": // to the API, for so long
		f.NodeObject.Status.Conditions[0] = v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionUnknown, Reason: "NodeStatusUnknown", LastTransitionTime: metav1.Time{Time: ago(value)}}
	case "deleted":
		f.NodeObject = nil
	case "no-lease":
		s.noLease = true
	case "holder": // holder=NAME:WRITER: the lease is renewed in time, and names another holder
		holder, writer, _ := strings.Cut(value, ":")
		f.Lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:leaseDurationSeconds":{},"f:renewTime":{}}}`)},
			{Manager: writer, Time: &metav1.Time{Time: ago("2m")}, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:holderIdentity":{}}}`)}}},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: storyNow}}}
		f.LeaseAt = storyNow
	case "written": // written=WRITER:CONDITION:STATUS: another writer's condition of the Node
		parts := strings.SplitN(value, ":", 3)
		raw := fmt.Sprintf(`{"f:status":{"f:conditions":{"k:{\"type\":\"%s\"}":{"f:status":{}}}}}`, parts[1])
		s.nodeWritten(parts[0], raw)
		f.NodeObject.Status.Conditions = nodeConditions(v1.NodeConditionType(parts[1]), v1.ConditionStatus(parts[2]))
	case "without-ready": // no condition Ready
		f.NodeObject.Status.Conditions = nil
	case "machine-id": // machine-id=ID:WRITER: what the Node has, and who wrote it
		id, writer, _ := strings.Cut(value, ":")
		f.Identity = audit.Identity{MachineID: "this"}
		f.NodeObject.Status.NodeInfo.MachineID = id
		s.nodeWritten(writer, `{"f:status":{"f:nodeInfo":{"f:machineID":{}}}}`)
	}
}

func (s *story) nodeWritten(writer, raw string) {
	s.facts.NodeObject.ManagedFields = append(s.facts.NodeObject.ManagedFields, metav1.ManagedFieldsEntry{Manager: writer, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status",
		Time: &metav1.Time{Time: ago("2m")}, FieldsV1: metav1.NewFieldsV1(raw)})
}

func (s *story) storyPod(name, containers string, words []string) {
	grace := int64(30)
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1"},
		Spec:       v1.PodSpec{NodeName: simName, RestartPolicy: v1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace},
	}
	for c := range strings.SplitSeq(containers, ",") {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: c})
	}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "init":
			for c := range strings.SplitSeq(value, ",") {
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{Name: c})
			}
		case "policy":
			pod.Spec.RestartPolicy = v1.RestartPolicy(value)
		case "deleted": // its grace ended so long ago
			pod.DeletionTimestamp = &metav1.Time{Time: ago(value)}
		case "finalizer":
			pod.Finalizers = append(pod.Finalizers, value)
		case "postStart":
			pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{}}
		case "liveness":
			pod.Spec.Containers[len(pod.Spec.Containers)-1].LivenessProbe = &v1.Probe{}
		case "mirror":
			pod.Annotations = map[string]string{podstatus.SourceAnnotation: podstatus.SourceFile, podstatus.HashAnnotation: "hash-" + name, v1.MirrorPodAnnotationKey: "hash-" + name}
		case "manifest":
			s.facts.Manifests = append(s.facts.Manifests, audit.Manifest{Namespace: "default", Name: name})
		}
	}
	s.pods[name] = pod
}

func (s *story) status(side, name string, words []string) error {
	pod := s.pods[name].DeepCopy()
	pod.Status.Phase = v1.PodPhase(words[0])
	ready, unscheduled, withoutReady := v1.ConditionFalse, false, false
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "ready":
			ready = v1.ConditionTrue
		case "without-ready": // no condition Ready
			ready, withoutReady = v1.ConditionTrue, true
		case "unscheduled": // by this writer
			unscheduled = true
			pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{Manager: value, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status",
				Time: &metav1.Time{Time: ago("2m")}, FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{"k:{\"type\":\"PodScheduled\"}":{"f:status":{}}}}}`)})
		case "by":
			manager, field, _ := strings.Cut(value, ":")
			raw := fmt.Sprintf(`{"f:status":{"f:%s":{}}}`, field)
			if field, others, _ := strings.Cut(field, ","); field == "Ready" {
				raw = `{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:status":{}}}`
				for _, other := range strings.FieldsFunc(others, func(r rune) bool { return r == ',' }) {
					raw += fmt.Sprintf(`,"f:%s":{}`, other)
				}
				raw += "}}"
			}
			pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status",
				Time: &metav1.Time{Time: ago("2m")}, FieldsV1: metav1.NewFieldsV1(raw)})
		default:
			status, err := storyStatus(key, value)
			if err != nil {
				return err
			}
			status.Ready = ready == v1.ConditionTrue && status.State.Running != nil
			if podstatus.FindContainer(pod, key) != nil && len(pod.Spec.InitContainers) > len(pod.Status.InitContainerStatuses) {
				pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, status)
			} else {
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
			}
		}
	}
	if strings.Contains(strings.Join(words, " "), ":Ready") { // the writer has written the opposite
		ready = map[v1.ConditionStatus]v1.ConditionStatus{v1.ConditionTrue: v1.ConditionFalse, v1.ConditionFalse: v1.ConditionTrue}[ready]
	}
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: ready, LastTransitionTime: metav1.Time{Time: ago("20m")}}}
	if withoutReady {
		pod.Status.Conditions = nil
	}
	if unscheduled {
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionFalse})
	}
	if side == "api" {
		s.facts.APIPods[pod.UID] = audit.Sighting{Pod: pod, At: ago("20m")}
		return nil
	}
	if podstatus.IsMirror(pod) {
		delete(pod.Annotations, v1.MirrorPodAnnotationKey)
		pod.UID, pod.ResourceVersion = types.UID(pod.Annotations[podstatus.HashAnnotation]), ""
	}
	s.facts.KubeletPods[pod.UID] = audit.Sighting{Pod: pod, At: ago("20m")}
	return nil
}

// parts reads STATE:ID[:NUMBER[:CODE[:AGO]]].
func parts(value string) (state, id string, number, code int, when string, err error) {
	p := append(strings.Split(value, ":"), "", "", "", "")
	number, code = 0, 0
	if p[2] != "" {
		if number, err = strconv.Atoi(p[2]); err != nil {
			return
		}
	}
	if p[3] != "" {
		if code, err = strconv.Atoi(p[3]); err != nil {
			return
		}
	}
	return p[0], p[1], number, code, p[4], nil
}

func storyStatus(name, value string) (v1.ContainerStatus, error) {
	state, id, restarts, code, _, err := parts(value)
	status := v1.ContainerStatus{Name: name, RestartCount: int32(restarts)}
	if id != "" {
		status.ContainerID = "containerd://" + id
	}
	switch state {
	case "running":
		status.State.Running = &v1.ContainerStateRunning{StartedAt: metav1.Time{Time: ago("25m")}}
	case "exited":
		status.State.Terminated = &v1.ContainerStateTerminated{ExitCode: int32(code), Reason: "Error", ContainerID: status.ContainerID, FinishedAt: metav1.Time{Time: ago("20m")}}
	default:
		status.State.Waiting = &v1.ContainerStateWaiting{Reason: state}
	}
	return status, err
}

func (s *story) nodeUID(name string) types.UID {
	if pod := s.pods[name]; pod != nil {
		if hash := pod.Annotations[podstatus.HashAnnotation]; hash != "" {
			return types.UID(hash)
		}
		return pod.UID
	}
	return types.UID("uid-" + name)
}

func (s *story) runtime(name string, words []string) error {
	uid := s.nodeUID(name)
	s.facts.Sandboxes["s-"+name] = audit.Sandbox{ID: "s-" + name, UID: uid, Namespace: "default", Name: name, Ready: true, Created: ago("26m"), At: ago("26m")}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		state, id, attempt, code, when, err := parts(value)
		if err != nil {
			return err
		}
		c := audit.Container{ID: id, SandboxID: "s-" + name, UID: uid, Namespace: "default", PodName: name, Name: key, Attempt: uint32(attempt), State: audit.ContainerState(state), Created: ago("25m"), Started: ago("25m"), At: ago("25m")}
		if when == "" {
			when = "10m"
		}
		switch c.State {
		case audit.ContainerExited:
			c.Finished, c.ExitCode, c.At = ago(when), int32(code), ago(when)
		case audit.ContainerRunning:
			if attempt > 0 {
				c.Started, c.Created, c.At = ago(when), ago(when), ago(when)
			}
		}
		s.facts.Containers[id] = c
	}
	return nil
}

func (s *story) machine(name string, words []string) {
	uid := s.nodeUID(name)
	dir := audit.PodDir{Path: "/var/lib/kubelet/pods/" + string(uid), Changed: ago("15m")}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "mount":
			dir.Mounts = append(dir.Mounts, dir.Path+"/volumes/"+value)
		case "volume":
			dir.Volumes = append(dir.Volumes, dir.Path+"/volumes/"+value)
		case "processes": // of its control group
			n, _ := strconv.Atoi(value)
			s.facts.Cgroups[uid] = audit.Cgroup{Path: "/kubepods/pod" + string(uid), Processes: n}
		}
	}
	s.facts.PodDirs[uid] = dir
}

// at is the story after a while: all sides that answer have answered again.
func (s *story) at(after time.Duration) audit.Facts {
	f := s.facts
	f.Now = storyNow.Add(after)
	for _, a := range []*audit.Answer{&f.APIAnswer, &f.KubeletAnswer, &f.RuntimeAnswer, &f.MachineAnswer} {
		if a.Err == "" {
			a.At = f.Now
		}
	}
	if !f.ClockAt.IsZero() {
		f.ClockAt = f.Now
	}
	if f.Lease == nil && !s.noLease {
		f.Lease, f.LeaseAt = &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: f.Now}}}, f.Now
	}
	if s.changes != nil {
		s.changes(f.Now, &f)
	}
	return f
}

func (s *story) audit(length string) string {
	total, err := time.ParseDuration(length)
	if err != nil {
		return err.Error()
	}
	a := audit.NewAuditor(audit.AuditorOptions{})
	var last audit.Report
	for after := time.Duration(0); after <= total; after += time.Second {
		last = a.Audit(s.at(after))
	}
	var b strings.Builder
	for _, d := range last.Differences {
		describe(&b, d)
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func describe(b *strings.Builder, d audit.Difference) {
	state := "drift"
	if !d.Drift {
		state = "not yet drift"
	}
	fmt.Fprintf(b, "%s, %s, %s since %s\n", d.Kind, d.Certainty, state, d.Since.Format("15:04:05"))
	fmt.Fprintf(b, "  %s\n", d.Message)
	for _, e := range d.Evidence {
		fmt.Fprintf(b, "  - %s: %s\n", e.Side, e.Text)
	}
	fmt.Fprintf(b, "  To do: %s\n", d.Do)
	if d.Repair {
		b.WriteString("  Can be repaired.\n")
	}
}

func (s *story) pictures(name string) string {
	var b strings.Builder
	for _, p := range audit.Pictures(s.at(0), s.pods[name].UID) {
		fmt.Fprintf(&b, "%s:", p.Side)
		switch {
		case !p.Known:
			fmt.Fprintf(&b, " does not answer (%s); last", p.Err)
		case !p.Exists:
			b.WriteString(" does not have it")
		}
		for _, word := range []string{p.Phase, strings.TrimSuffix("Ready "+p.Ready, "Ready ")} {
			if word != "" {
				b.WriteString(" " + word)
			}
		}
		if p.Deleting {
			b.WriteString(" deleting")
		}
		b.WriteString("\n")
		for _, c := range p.Containers {
			mark := " "
			if c.Differs {
				mark = "≠"
			}
			fmt.Fprintf(&b, "%s %s %s %s restarts %d", mark, c.Name, c.State, c.ID, c.Restarts)
			if c.ExitCode != nil {
				fmt.Fprintf(&b, " exit code %d", *c.ExitCode)
			}
			b.WriteString("\n")
		}
		for _, n := range p.Notes {
			fmt.Fprintf(&b, "  %s\n", n)
		}
	}
	return b.String()
}
