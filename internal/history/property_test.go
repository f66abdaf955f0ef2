package history

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/podstatus"
)

// drawStatus is any status, of few values, so that much stays as it was.
func drawStatus(t *rapid.T) *v1.PodStatus {
	s := &v1.PodStatus{
		Phase:  rapid.SampledFrom([]v1.PodPhase{"", v1.PodPending, v1.PodRunning, v1.PodFailed}).Draw(t, "phase"),
		Reason: rapid.SampledFrom([]string{"", "", "Evicted"}).Draw(t, "reason"),
	}
	for _, c := range []v1.PodConditionType{v1.PodReady, v1.PodScheduled, "x/y"} {
		if rapid.Bool().Draw(t, "has") {
			s.Conditions = append(s.Conditions, v1.PodCondition{Type: c, Status: rapid.SampledFrom([]v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse}).Draw(t, "status"),
				Reason: rapid.SampledFrom([]string{"", "A"}).Draw(t, "why")})
		}
	}
	for _, name := range []string{"a", "b"} {
		if rapid.Bool().Draw(t, "has") {
			s.ContainerStatuses = append(s.ContainerStatuses, drawContainer(t, name))
		}
	}
	return s
}

func drawContainer(t *rapid.T, name string) v1.ContainerStatus {
	c := v1.ContainerStatus{Name: name, Ready: rapid.Bool().Draw(t, "ready"), RestartCount: rapid.Int32Range(0, 1).Draw(t, "restarts"),
		ContainerID: rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "id")}
	switch rapid.IntRange(0, 3).Draw(t, "state") {
	case 1:
		c.State.Waiting = &v1.ContainerStateWaiting{Reason: rapid.SampledFrom([]string{"", "CrashLoopBackOff"}).Draw(t, "waits")}
	case 2:
		c.State.Running = &v1.ContainerStateRunning{}
	case 3:
		c.State.Terminated = &v1.ContainerStateTerminated{ExitCode: rapid.Int32Range(0, 1).Draw(t, "exit")}
	}
	return c
}

// flat is a status as plain text by what it is about: a second, dumb way to find differences.
func flat(s *v1.PodStatus) map[string]string {
	m := map[string]string{"Phase//": string(s.Phase) + "|" + s.Reason}
	for _, c := range s.Conditions {
		m["Condition/"+string(c.Type)+"/"] = string(c.Status) + "|" + c.Reason
	}
	for i := range s.ContainerStatuses {
		c := &s.ContainerStatuses[i]
		state := "waiting|"
		switch {
		case c.State.Waiting != nil:
			state += c.State.Waiting.Reason
		case c.State.Running != nil:
			state = "running|" + c.ContainerID
		case c.State.Terminated != nil:
			state = fmt.Sprint("terminated|", c.ContainerID, c.State.Terminated.ExitCode)
		}
		m["Container//"+c.Name] = state
		m["Restart//"+c.Name] = fmt.Sprint(c.RestartCount)
		m["Ready//"+c.Name] = fmt.Sprint(c.Ready)
	}
	return m
}

// naive are the subjects that differ, sorted. Of a container that is new or gone, its zero values
// are no difference.
func naive(older, newer *v1.PodStatus) []string {
	a, b := flat(older), flat(newer)
	zero := func(about string, m map[string]string) string {
		if v, ok := m[about]; ok {
			return v
		}
		switch {
		case about[:5] == "Ready":
			return "false"
		case about[:5] == "Resta":
			return "0"
		}
		return "(none)"
	}
	var list []string
	for about := range b {
		if zero(about, a) != b[about] {
			list = append(list, about)
		}
	}
	for about := range a {
		if _, ok := b[about]; !ok && about[:5] != "Ready" && about[:5] != "Resta" {
			list = append(list, about)
		}
	}
	slices.Sort(list)
	return list
}

func TestTheStoreHasWhatANaiveDiffFinds(t *testing.T) {
	directory := t.TempDir()
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		path := filepath.Join(directory, fmt.Sprint(run))
		defer os.Remove(path)
		perPod := rapid.SampledFrom([]int{4, 12, 1000}).Draw(t, "per pod")
		options := Options{PerPod: perPod, File: path}
		s := New(options)
		want := map[string][]string{} // by pod: all that ever differed
		statuses := map[string]*v1.PodStatus{}
		version := uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"web", "db"}).Draw(t, "pod")
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				s.Accepted(types.UID(name), version, noon)
			case 1:
				s.Seq()
			case 2: // a restart in order
				w := &writer{store: s, path: path}
				w.flush(time.Now())
				w.end()
				before := s.Pods()
				s = New(options)
				if after := s.Pods(); !reflect.DeepEqual(after, before) {
					t.Fatalf("after a restart:\n got %+v\nwant %+v", after, before)
				}
			default:
				old, known := statuses[name]
				if !known {
					old = &v1.PodStatus{}
				}
				next := drawStatus(t)
				version++
				s.Changed(podstatus.Change{UID: types.UID(name), Namespace: "shop", Name: name, Created: noon, Old: old, New: next, Version: version, At: noon.Add(time.Duration(version) * time.Second)})
				want[name] = append(want[name], naive(old, next)...)
				statuses[name] = next
			}
		}
		for name, all := range want {
			pod, _ := s.Pod("shop", name)
			if len(pod.Records) > perPod || len(pod.Records)+pod.Dropped != len(all) {
				t.Fatalf("%s: %d records and %d dropped, want %d in all and at most %d", name, len(pod.Records), pod.Dropped, len(all), perPod)
			}
			checkOrder(t, name, pod, all)
		}
	})
}

// checkOrder compares the subjects, if nothing was dropped, and the order of what is there.
func checkOrder(t *rapid.T, name string, pod Pod, all []string) {
	var got []string
	for i, r := range pod.Records {
		about := fmt.Sprintf("%s/%s/%s", r.Kind, r.Subject, r.Container)
		got = append(got, about)
		if i > 0 && (r.Seq <= pod.Records[i-1].Seq || r.Observed.Before(pod.Records[i-1].Observed)) {
			t.Fatalf("%s: out of order:\n%s", name, shown(pod.Records))
		}
	}
	if pod.Dropped > 0 {
		return
	}
	slices.Sort(got)
	wanted := slices.Sorted(slices.Values(all))
	if !slices.Equal(got, wanted) {
		t.Fatalf("%s: got %q, want %q", name, got, wanted)
	}
}

func FuzzFile(f *testing.F) {
	path := newFile(f)
	life(f, Options{File: path}, twoPods)
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("statusd history 1\n"))
	f.Add([]byte("statusd history 99999999999999999999\n"))
	var signed []byte // lines whose checksum is right
	signed = append(signed, "statusd history 1\n"...)
	for _, l := range []line{{Op: opPod, UID: "x"}, {Op: opRecord, UID: "x", At: -1, Record: &record{Seq: maxSeq}}, {Op: opGone, UID: "x", At: 1 << 62}, {Op: "unknown"}, {Op: opAccepted, UID: "x", Through: 1 << 60, Seq: 1 << 63}} {
		signed = appendLine(signed, &l)
	}
	f.Add(signed)
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "history")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s := New(Options{File: path, PerPod: 10, Total: 100})
		for _, pod := range s.Pods() {
			if len(pod.Records) > 10 {
				t.Fatalf("%d records", len(pod.Records))
			}
		}
		s.Changed(podstatus.Change{UID: "x", Namespace: "a", Name: "b", Old: &v1.PodStatus{}, New: started("x", true), First: true, Version: 1, At: time.Now()})
		s.Accepted("x", 1, time.Now())
		w := &writer{store: s, path: path}
		w.flush(time.Now())
		w.end()
		if again := New(Options{File: path, PerPod: 10, Total: 100}); len(again.Pods()) != len(s.Pods()) {
			t.Fatalf("%d pods, had %d", len(again.Pods()), len(s.Pods()))
		}
	})
}
