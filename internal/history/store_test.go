package history

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

func TestARecordIsAcceptedWithItsVersion(t *testing.T) {
	s := New(Options{})
	r := report(s, "web")
	r.set(&v1.PodStatus{Phase: v1.PodRunning})
	r.accepted()
	r.set(&v1.PodStatus{Phase: v1.PodSucceeded})
	pod, _ := s.Pod("shop", "web")
	want := "Phase : Pending → Running accepted\nPhase : Running → Succeeded\n"
	if got := shown(pod.Records); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func TestIntermediateStatesAreKept(t *testing.T) {
	s := New(Options{})
	r := report(s, "web")
	for range 20 {
		r.flap(1)
	}
	pod, _ := s.Pod("shop", "web")
	flips := 0
	for _, rec := range pod.Records {
		if rec.Kind == KindReady {
			flips++
		}
	}
	if flips != 20 {
		t.Errorf("got %d flips of readiness of 20 that no query saw in between:\n%s", flips, shown(pod.Records))
	}
}

func TestAFlappingConditionPushesOutOnlyItsOwnPast(t *testing.T) {
	s := New(Options{PerPod: 20})
	s.Add(ref("web"), Record{Observed: noon, Kind: KindHook, Subject: "postStart", Container: "web", To: "failed"})
	r := report(s, "web")
	r.flap(500)
	pod, _ := s.Pod("shop", "web")
	if len(pod.Records) != 20 || pod.Records[0].Kind != KindHook {
		t.Fatalf("got %d records:\n%s", len(pod.Records), shown(pod.Records))
	}
	var missing, flips, first int
	for i, rec := range pod.Records {
		missing += rec.Dropped
		if rec.Kind == KindReady {
			if flips++; flips == 1 {
				first = i
			}
		}
	}
	if pod.Records[first].Dropped != 0 {
		t.Errorf("the first flip was dropped:\n%s", shown(pod.Records))
	}
	if missing != pod.Dropped || missing == 0 {
		t.Errorf("records say that %d are missing, the pod %d", missing, pod.Dropped)
	}
	if last := pod.Records[len(pod.Records)-1]; last.Observed.IsZero() || last.Kind != KindReady {
		t.Errorf("the newest record is %+v", last)
	}
}

func TestTheTotalIsSharedFairly(t *testing.T) {
	s := New(Options{PerPod: 100, Total: 200})
	for _, name := range []string{"a", "b", "c", "d"} {
		report(s, name).set(started(name, true))
	}
	report(s, "noisy").flap(1000)
	report(s, "loud").flap(1000)
	total := 0
	for _, pod := range s.Pods() {
		total += len(pod.Records)
		if len(pod.Name) == 1 && pod.Dropped > 0 {
			t.Errorf("pod %s has lost %d records to the noisy ones", pod.Name, pod.Dropped)
		}
	}
	if total > 200 {
		t.Errorf("got %d records, want at most 200", total)
	}
}

func TestFairShare(t *testing.T) {
	for _, c := range []struct {
		lengths []int
		target  int
		want    int
	}{
		{[]int{10, 10, 80}, 60, 40}, {[]int{50, 50}, 60, 30}, {[]int{1, 2, 3}, 100, 94}, {nil, 5, 5},
	} {
		if got := fairShare(slices.Clone(c.lengths), c.target); got != c.want {
			t.Errorf("%v of %d: got %d, want %d", c.lengths, c.target, got, c.want)
		}
	}
}

func TestPodsThatAreGoneGiveWayFirst(t *testing.T) {
	s := New(Options{PerPod: 10, Total: 100})
	for i := range 50 {
		name := string(rune('A' + i))
		r := report(s, name)
		r.at = noon.Add(time.Duration(i) * time.Second)
		r.set(started(name, true))
		if i < 25 {
			s.Removed(ref(name).UID, time.Now().Add(time.Duration(i-100)*time.Second))
		}
	}
	for _, pod := range s.Pods() {
		if len(pod.Records) == 0 {
			t.Errorf("pod %s has no records", pod.Name)
		}
	}
	if pods := s.Pods(); len(pods) < 25 {
		t.Errorf("got %d pods, want at least the 25 that are there", len(pods))
	}
}

func TestAPodThatIsGoneStaysForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		report(s, "web").set(&v1.PodStatus{Phase: v1.PodRunning})
		s.Removed("web", time.Now())
		time.Sleep(59 * time.Minute)
		pod, ok := s.Pod("shop", "web")
		if !ok || pod.Gone == nil || !strings.HasSuffix(shown(pod.Records), "Deletion : → gone\n") && !strings.HasSuffix(shown(pod.Records), "Deletion :  → gone\n") {
			t.Errorf("after 59 min: got %+v", pod)
		}
		time.Sleep(2 * time.Minute)
		if _, ok := s.Pod("shop", "web"); ok {
			t.Error("after 61 min the pod is still there")
		}
	})
}

func TestThePodThatIsThereIsTheNewestOfItsName(t *testing.T) {
	s := New(Options{})
	for i, uid := range []string{"1", "2", "3"} {
		s.Add(Ref{UID: ref(uid).UID, Namespace: "shop", Name: "web"}, Record{Observed: noon.Add(time.Duration(i) * time.Hour), Kind: KindAdmission, To: "admitted"})
	}
	s.Removed("3", time.Now())
	if pod, _ := s.Pod("shop", "web"); pod.UID != "2" {
		t.Errorf("got %s, want 2: 3 is gone", pod.UID)
	}
}

func TestAStaticPodThatComesBackIsNotGone(t *testing.T) {
	s := New(Options{})
	r := report(s, "web")
	r.set(&v1.PodStatus{Phase: v1.PodRunning})
	s.Removed("web", time.Now())
	r.set(&v1.PodStatus{Phase: v1.PodSucceeded})
	if pod, _ := s.Pod("shop", "web"); pod.Gone != nil {
		t.Errorf("got gone at %v", pod.Gone)
	}
}

func TestDeliveriesAreRecordedWhenTheirStateChanges(t *testing.T) {
	s := New(Options{})
	r := report(s, "web")
	r.at = noon
	r.set(&v1.PodStatus{Phase: v1.PodRunning})
	for i := range 12 {
		s.Failed(podstatus.Undelivered{UID: "web", Version: 1, At: noon.Add(time.Duration(i) * time.Second), Tries: i + 1, Err: errors.New("503"), Reason: "ServiceUnavailable"})
	}
	s.Failed(podstatus.Undelivered{UID: "web", Version: 1, At: noon.Add(13 * time.Second), Tries: 13, Err: errors.New("refused"), Reason: "Forbidden"})
	s.Accepted("web", 1, noon.Add(40*time.Second))
	s.Failed(podstatus.Undelivered{UID: "web", Version: 1, At: noon, Tries: 1, Waits: "resources are not reclaimed"})
	s.Failed(podstatus.Undelivered{UID: "web", Version: 1, At: noon, Rounds: 3, Writer: "other"})
	s.Failed(podstatus.Undelivered{UID: "unknown", Version: 1, At: noon, Tries: 1, Err: errors.New("503")})
	pod, _ := s.Pod("shop", "web")
	want := `Phase : Pending → Running accepted
Delivery :  → failing (ServiceUnavailable) (503)
Delivery : failing → failing (Forbidden) (refused)
Delivery : failing → delivered (after 14 tries in 40 s)
Delivery :  → overwritten (another writer, other, changes the status back)
`
	if got := shown(pod.Records); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func TestWhatIsKnownOnceIsRecordedOnce(t *testing.T) {
	s := New(Options{})
	for range 3 { // a process that has restarted finds them out again
		s.Add(ref("web"), Record{Observed: noon, Kind: KindAdmission, To: "admitted"})
		s.Add(ref("web"), Record{Observed: noon, Kind: KindDeletion, To: "ending", Reason: "Finished"})
		s.Add(ref("web"), Record{Observed: noon, Kind: KindDeletion, To: "ended"})
	}
	s.Add(ref("web"), Record{Observed: noon, Kind: KindProbe, Subject: "readiness", Container: "web", To: "passed"})
	s.Add(ref("web"), Record{Observed: noon, Kind: KindProbe, Subject: "readiness", Container: "web", To: "failed"})
	pod, _ := s.Pod("shop", "web")
	want := "Admission :  → admitted\nDeletion :  → ending (Finished)\nDeletion : ending → ended\nProbe readiness web:  → passed\nProbe readiness web: passed → failed\n"
	if got := shown(pod.Records); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func TestAFullInboxJoinsAndSaysSo(t *testing.T) {
	s := New(Options{Batch: 10})
	web, db := report(s, "web"), report(s, "db")
	for range 50 {
		web.flap(1)
		db.flap(1)
	}
	last := started("web", true) // as before the first change that was joined
	last.Phase = v1.PodSucceeded
	web.set(last)
	web.accepted()
	s.Removed("db", time.Now())
	pod, _ := s.Pod("shop", "web")
	end := slices.IndexFunc(pod.Records, func(r Record) bool { return r.Kind == KindPhase && r.To == "Succeeded" })
	if end < 0 || pod.Records[end].Accepted == nil {
		t.Errorf("the last status is not there, or not accepted:\n%s", shown(pod.Records))
	}
	if pod, _ := s.Pod("shop", "db"); pod.Gone == nil {
		t.Error("the removal is lost")
	}
	to := "not ready"
	for _, r := range pod.Records {
		if r.Kind == KindReady {
			if r.From != to {
				t.Errorf("a record begins with %q, the one before ended with %q:\n%s", r.From, to, shown(pod.Records))
			}
			to = r.To
		}
	}
	if got := shown(s.Node()); !strings.Contains(got, "→ lost") {
		t.Errorf("the node does not say that changes were lost: %s", got)
	}
}

func TestTextsAreBounded(t *testing.T) {
	s := New(Options{})
	s.Add(ref("web"), Record{Observed: noon, Kind: KindHook, To: strings.Repeat("é", 1000), Message: strings.Repeat("\xff", 5000) + strings.Repeat("ü", 5000)})
	pod, _ := s.Pod("shop", "web")
	if r := pod.Records[0]; len(r.To) > maxName || len(r.Message) > maxMessage || !strings.HasSuffix(r.To, "é…") {
		t.Errorf("got %d and %d bytes: %q", len(r.To), len(r.Message), r.To)
	}
}

func TestAWatchReplaysAndFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan struct{})
		go func() { defer close(done); s.Run(ctx) }()
		r := report(s, "web")
		r.set(&v1.PodStatus{Phase: v1.PodRunning})
		var got []string
		var seqs []uint64
		next := 0
		for e := range s.Watch(ctx, 0) {
			got = append(got, strings.TrimSpace(shown([]Record{e.Record})))
			seqs = append(seqs, e.Seq)
			switch next++; next {
			case 1:
				r.accepted()
			case 2:
				r.set(&v1.PodStatus{Phase: v1.PodFailed})
			case 3:
				cancel()
			}
		}
		<-done
		want := []string{"Phase : Pending → Running", "Phase : Pending → Running accepted", "Phase : Running → Failed"}
		if !slices.Equal(got, want) || !slices.IsSorted(seqs) {
			t.Errorf("got %q at %v, want %q", got, seqs, want)
		}
		// A watch goes on where the first one was.
		for e := range s.Watch(t.Context(), seqs[1]) {
			if e.Reset || e.Record.To != "Failed" {
				t.Errorf("resumed: got %+v, want the third event", e)
			}
			break
		}
	})
}

func TestAWatchThatHasMissedSomethingIsReset(t *testing.T) {
	s := New(Options{PerPod: 5})
	r := report(s, "web")
	r.flap(2)
	before := s.Seq()
	r.flap(50)
	var events []Event
	for e := range s.Watch(t.Context(), before) {
		if events = append(events, e); len(events) == 6 {
			break
		}
	}
	if !events[0].Reset || events[1].Reset || events[5].Seq != s.Seq() {
		t.Errorf("got %+v, want a reset and the five records that are there", events)
	}
	for e := range s.Watch(t.Context(), s.Seq()+1000) {
		if !e.Reset {
			t.Errorf("a number from the future: got %+v, want a reset", e)
		}
		break
	}
}

// A watch that has everything that is there is not reset because the newest is not.
func TestAWatchThatHasAllIsNotResetByWhatWasPurged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		report(s, "web").set(&v1.PodStatus{Phase: v1.PodRunning})
		report(s, "gone").set(&v1.PodStatus{Phase: v1.PodRunning})
		s.Removed("gone", time.Now())
		s.Seq()
		time.Sleep(2 * time.Hour)
		s.Seq()
		var since uint64
		for e := range s.Watch(t.Context(), 0) {
			since = e.Seq
			break
		}
		s.Add(ref("web"), Record{Kind: KindHook, To: "failed"})
		for e := range s.Watch(t.Context(), since) {
			if e.Reset || e.Record.Kind != KindHook {
				t.Errorf("got %+v, want the record that is new", e)
			}
			break
		}
	})
}

// A watch that has everything is not reset because something old is dropped.
func TestAWatchThatFollowsIsNotReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{PerPod: 5})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan struct{})
		go func() { defer close(done); s.Run(ctx) }()
		r := report(s, "web")
		r.flap(1)
		n := 0
		for e := range s.Watch(ctx, 0) {
			if e.Reset {
				t.Fatal("reset")
			}
			if e.Record.Kind == KindReady {
				r.flap(1)
			}
			if n++; n > 200 {
				cancel()
			}
		}
		<-done
	})
}

func TestPodsThatWentBetweenTwoProcessesAreGone(t *testing.T) {
	s := New(Options{})
	report(s, "web").set(&v1.PodStatus{Phase: v1.PodRunning})
	report(s, "db").set(&v1.PodStatus{Phase: v1.PodRunning})
	s.Add(Ref{}, Record{Kind: KindNode, To: "started"})
	s.Retain(func(uid types.UID) bool { return uid == "web" }, time.Now())
	for name, gone := range map[string]bool{"web": false, "db": true} {
		if pod, _ := s.Pod("shop", name); (pod.Gone != nil) != gone {
			t.Errorf("%s: gone at %v, want gone: %v", name, pod.Gone, gone)
		}
	}
}
