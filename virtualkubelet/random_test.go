package virtualkubelet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

// lie draws a status that a provider could report, right or wrong.
func lie(r *rand.Rand, pod *v1.Pod) v1.PodStatus {
	at := func() metav1.Time {
		return metav1.NewTime(time.Now().Add(time.Duration(r.IntN(7200)-3600) * time.Second))
	}
	s := v1.PodStatus{Phase: []v1.PodPhase{"", v1.PodPending, v1.PodRunning, v1.PodRunning, v1.PodRunning, v1.PodSucceeded, v1.PodFailed, v1.PodUnknown, "Creating"}[r.IntN(9)]}
	if r.IntN(2) == 0 {
		start := at()
		s.StartTime = &start
	}
	if r.IntN(2) == 0 {
		s.Conditions = append(s.Conditions, v1.PodCondition{Type: v1.PodReady, Status: []v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse, "Maybe"}[r.IntN(3)], LastTransitionTime: at()})
	}
	if r.IntN(8) == 0 {
		s.Conditions = append(s.Conditions, v1.PodCondition{Type: "someone/else", Status: v1.ConditionTrue})
	}
	if r.IntN(8) == 0 {
		s.PodIPs = []v1.PodIP{{IP: ""}, {IP: "10.0.0.1"}}
	}
	names := []string{"stranger"}
	for _, c := range pod.Spec.Containers {
		names = append(names, c.Name, c.Name)
	}
	for range r.IntN(4) {
		c := v1.ContainerStatus{Name: names[r.IntN(len(names))], RestartCount: int32(r.IntN(4) - 1), Ready: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			c.ContainerID = fmt.Sprintf("x://%d", r.IntN(3))
		}
		if r.IntN(4) == 0 {
			c.State.Waiting = &v1.ContainerStateWaiting{Reason: "Thinking"}
		}
		if r.IntN(2) == 0 {
			c.State.Running = &v1.ContainerStateRunning{StartedAt: at()}
		}
		if r.IntN(4) == 0 {
			c.State.Terminated = &v1.ContainerStateTerminated{ExitCode: int32(r.IntN(3)), StartedAt: at(), FinishedAt: at()}
		}
		s.ContainerStatuses = append(s.ContainerStatuses, c)
	}
	return s
}

func randomPod(r *rand.Rand) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"}}
	pod.Spec.RestartPolicy = []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyNever, v1.RestartPolicyOnFailure}[r.IntN(3)]
	for i := range 1 + r.IntN(2) {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: fmt.Sprintf("c%d", i), Image: "app"})
	}
	return pod
}

// Whatever is reported, what is made of it may follow what was before, is complete, and is not repaired again.
func TestRepair_HoldsTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		pod := randomPod(r)
		previous, now := v1.PodStatus{Phase: v1.PodPending}, time.Unix(1_800_000_000, 0)
		for range 8 {
			now = now.Add(time.Duration(r.IntN(100)) * time.Second)
			reported := lie(r, pod)
			next, _ := Repair(pod, reported, previous, now)
			if err := podrules.CheckTransitions(pod, &previous, &next); err != nil {
				t.Fatalf("%+v\nafter %+v\nbecame %+v\n%v", reported, previous, next, err)
			}
			switch {
			case podstatus.IsTerminal(previous.Phase) && next.Phase != previous.Phase:
				t.Fatalf("%s became %s", previous.Phase, next.Phase)
			case previous.Phase == v1.PodRunning && next.Phase == v1.PodPending:
				t.Fatalf("Running became Pending after %+v", reported)
			case len(next.ContainerStatuses) != len(pod.Spec.Containers):
				t.Fatalf("%d container statuses, want %d", len(next.ContainerStatuses), len(pod.Spec.Containers))
			case previous.StartTime != nil && !previous.StartTime.Equal(next.StartTime):
				t.Fatalf("the start moved from %v to %v", previous.StartTime, next.StartTime)
			}
			for _, c := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady, v1.PodInitialized, v1.PodScheduled} {
				if podstatus.FindCondition(next.Conditions, c) == nil {
					t.Fatalf("no condition %s", c)
				}
			}
			for i := range next.ContainerStatuses {
				c := &next.ContainerStatuses[i]
				was := podstatus.FindContainerStatus(&previous, c.Name)
				if podstatus.IsTerminal(next.Phase) && c.State.Running != nil {
					t.Fatalf("%s with a running container after %+v", next.Phase, reported)
				}
				if was != nil && c.RestartCount < was.RestartCount {
					t.Fatalf("restarts of %s went from %d to %d", c.Name, was.RestartCount, c.RestartCount)
				}
				if end := c.State.Terminated; end != nil && !end.FinishedAt.IsZero() && end.FinishedAt.Before(&end.StartedAt) {
					t.Fatalf("container %s ended before it started: %+v", c.Name, end)
				}
			}
			again, repairs := Repair(pod, next, next, now)
			if !podrules.Equal(&next, &again) {
				t.Fatalf("repaired again: %v\n%+v\n%+v", repairs, next, again)
			}
			previous = next
		}
	})
}

// misbehaving is a provider that fails, panics, blocks, lies and forgets at random, until it is told to behave.
type misbehaving struct {
	*notifying
	r *rand.Rand // under the lock of the cloud
}

func (m *misbehaving) draw(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.r == nil {
		return n // behaves
	}
	return m.r.IntN(n)
}

func (m *misbehaving) misbehave(ctx context.Context) error {
	switch m.draw(12) {
	case 0:
		return errCloud
	case 1:
		panic("misbehaving")
	case 2:
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (m *misbehaving) CreatePod(ctx context.Context, pod *v1.Pod) error {
	if m.draw(4) == 0 { // it is done, and the answer is lost
		_ = m.notifying.CreatePod(ctx, pod)
		return errCloud
	}
	if err := m.misbehave(ctx); err != nil {
		return err
	}
	return m.notifying.CreatePod(ctx, pod)
}

func (m *misbehaving) DeletePod(ctx context.Context, pod *v1.Pod) error {
	if err := m.misbehave(ctx); err != nil {
		return err
	}
	return m.notifying.DeletePod(ctx, pod)
}

func (m *misbehaving) UpdatePod(ctx context.Context, pod *v1.Pod) error {
	if err := m.misbehave(ctx); err != nil {
		return err
	}
	return m.notifying.UpdatePod(ctx, pod)
}

// GetPods lacks pods, or has them twice, under other UIDs or for other nodes.
func (m *misbehaving) GetPods(ctx context.Context) ([]*v1.Pod, error) {
	if err := m.misbehave(ctx); err != nil {
		return nil, err
	}
	pods, err := m.notifying.GetPods(ctx)
	listed := []*v1.Pod{}
	for _, pod := range pods {
		switch m.draw(12) {
		case 0:
			continue
		case 1:
			listed = append(listed, pod.DeepCopy(), nil)
		case 2:
			pod.UID = "another"
		case 3:
			pod.UID = ""
		case 4:
			pod.Spec.NodeName = "another"
		}
		listed = append(listed, pod)
	}
	return listed, err
}

func (m *misbehaving) GetPodStatus(ctx context.Context, namespace, name string) (*v1.PodStatus, error) {
	if err := m.misbehave(ctx); err != nil {
		return nil, err
	}
	pod, err := m.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	if m.draw(3) == 0 {
		m.mu.Lock()
		defer m.mu.Unlock()
		status := lie(m.r, pod)
		return &status, nil
	}
	return &pod.Status, nil
}

// A provider that misbehaves at random, an API server that does too, restarts, deletions and replacements: no rule is
// broken, and once all of them behave, all converges.
func TestMisbehavingProvider_BreaksNoInvariant(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			provider := &misbehaving{notifying: &notifying{cloud: newCloud()}, r: rand.New(rand.NewPCG(seed, 3))}
			w := newWorld(t, provider)
			w.start()
			name := func() string { return fmt.Sprintf("p%d", r.IntN(5)) }
			for range 30 {
				pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name()}}
				stored := w.api.Pod(pod)
				switch step := r.IntN(10); {
				case stored == nil:
					w.create(pod.Name, func(p *v1.Pod) { p.Spec.RestartPolicy = randomPod(r).Spec.RestartPolicy })
				case step < 3:
					reported := stored.DeepCopy()
					reported.Status = lie(r, stored)
					if r.IntN(4) == 0 {
						reported.UID = ""
					}
					provider.notify(reported)
				case step == 3:
					w.api.DeleteGracefully("default", pod.Name, int64(r.IntN(30)))
				case step == 4:
					w.api.Remove("default", pod.Name)
				case step == 5:
					provider.lose(pod.Name)
				case step == 6:
					w.stop()
					w.start()
				case step == 7:
					w.api.SetFault(statustest.On("PATCH", statustest.ErrRefused))
				default:
					w.api.SetFault(nil)
				}
				w.after(time.Duration(r.IntN(20)) * time.Second)
			}
			w.api.SetFault(nil)
			provider.mu.Lock()
			provider.r = nil
			provider.mu.Unlock()
			w.stop()
			w.start() // a pod that the list lacked at a start, and that the API has no more, is found at the next one
			w.after(time.Hour)
			for _, pod := range w.api.Pods() {
				if pod.DeletionTimestamp != nil {
					t.Errorf("pod %s is still being deleted: %+v", pod.Name, pod.Status)
				}
				held, _ := provider.GetPod(t.Context(), "default", pod.Name)
				switch {
				case podstatus.IsTerminal(pod.Status.Phase):
				case held == nil:
					t.Errorf("pod %s is %s, and the provider does not have it", pod.Name, pod.Status.Phase)
				case held.UID != pod.UID:
					t.Errorf("the provider has a former pod under the name %s", pod.Name)
				case pod.Status.Phase != v1.PodRunning:
					t.Errorf("pod %s is %s, and runs at the provider", pod.Name, pod.Status.Phase)
				}
			}
			kept, _ := provider.GetPods(t.Context())
			for _, pod := range kept {
				if w.api.Pod(pod) == nil {
					t.Errorf("the provider keeps pod %s, which the API does not have", pod.Name)
				}
			}
			w.end()
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	})
}
