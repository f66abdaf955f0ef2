package audit_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/podstatus"
)

// The sorts of pods that a node meets.
var sorts = []string{"plain", "several", "init", "sidecar", "static", "job", "failing job", "crash loop", "deleted", "evicted", "recreated", "being created", "pulling", "hook", "killed"}

func ms(t *rapid.T, label string, from, to int) time.Duration {
	return time.Duration(rapid.IntRange(from, to).Draw(t, label)) * time.Millisecond
}

// newPod is the spec of a pod of a sort.
func newPod(sort, name string, uid types.UID) *v1.Pod {
	grace := int64(30)
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid, CreationTimestamp: metav1.Time{Time: epoch}},
		Spec:       v1.PodSpec{NodeName: simName, RestartPolicy: v1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace, Containers: []v1.Container{{Name: "app"}}},
	}
	always := v1.ContainerRestartPolicyAlways
	switch sort {
	case "several":
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "log"}, v1.Container{Name: "proxy"})
	case "init":
		pod.Spec.InitContainers = []v1.Container{{Name: "setup"}, {Name: "migrate"}}
	case "sidecar":
		pod.Spec.InitContainers = []v1.Container{{Name: "mesh", RestartPolicy: &always}}
	case "pulling":
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "log"})
	case "hook":
		pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{}}
	case "killed":
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "log", LivenessProbe: &v1.Probe{}})
	case "job":
		pod.Spec.RestartPolicy = v1.RestartPolicyNever
	case "failing job":
		pod.Spec.RestartPolicy = v1.RestartPolicyOnFailure
	case "deleted", "evicted":
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "log"})
	}
	return pod
}

// live draws the life of a pod. It is over, or goes on unchanged, at the last moment.
func live(t *rapid.T, sort, name string, number int) []*simPod {
	uid := types.UID(fmt.Sprintf("uid-%d", number))
	s := &simPod{pod: newPod(sort, name, uid)}
	if sort == "static" {
		s.pod.Name = fmt.Sprintf("%s-%d-%s", name, number, simName) // one manifest each
		s.pod.Annotations = map[string]string{podstatus.SourceAnnotation: podstatus.SourceFile, podstatus.HashAnnotation: string(uid)}
		s.mirror = s.pod.DeepCopy()
		s.mirror.UID = types.UID(fmt.Sprintf("mirror-%d", number))
		s.mirror.Annotations[v1.MirrorPodAnnotationKey] = string(uid)
	}
	s.moments = []moment{{at: ms(t, "created", 0, 20000), inAPI: true}}
	s.then(ms(t, "admitted", 10, 500), func(m *moment) { m.admitted, m.dir = true, true })
	if sort == "being created" {
		return []*simPod{s}
	}
	s.then(ms(t, "sandbox", 100, 2000), func(m *moment) { m.sandbox = true })
	first := len(s.moments)
	switch sort {
	case "pulling": // an image takes long, and the container that runs already is not reported meanwhile
		s.starts(ms(t, "start", 10, 1000), "app")
		s.starts(ms(t, "pull", 10000, 90000), "log")
		s.block(first)
		return []*simPod{s}
	case "hook": // a postStart hook takes long
		s.starts(ms(t, "start", 10, 1000), "app")
		s.then(ms(t, "hook", 5000, 60000), func(*moment) {})
		s.block(first)
		return []*simPod{s}
	}
	start(t, s)
	switch sort {
	case "killed": // the kubelet stops a container for its liveness, and another exits meanwhile
		first := len(s.moments)
		s.exits(ms(t, "exit", 100, 10000), "app", 0)
		s.exits(ms(t, "grace", 100, 29000), "log", 137)
		s.starts(ms(t, "restart", 10, 500), "log")
		s.block(first)
		s.starts(ms(t, "restart", 10, 500), "app")
	case "job":
		s.exits(ms(t, "work", 100, 20000), "app", int32(rapid.IntRange(0, 1).Draw(t, "code")))
		s.then(ms(t, "over", 10, 500), func(m *moment) { m.ended = true })
		s.then(ms(t, "collected", 3000, 40000), func(m *moment) { m.attempts, m.sandbox = nil, false })
	case "failing job", "crash loop":
		crash(t, s)
	case "deleted":
		end(t, s, false)
	case "evicted":
		end(t, s, true)
	case "recreated":
		end(t, s, false)
		again := &simPod{pod: newPod("plain", name, uid+"-again")}
		again.moments = []moment{{at: s.moments[len(s.moments)-1].at + ms(t, "recreated", 0, 300), inAPI: true}}
		again.then(ms(t, "admitted", 10, 500), func(m *moment) { m.admitted, m.dir = true, true })
		again.then(ms(t, "sandbox", 100, 2000), func(m *moment) { m.sandbox = true })
		start(t, again)
		return []*simPod{s, again}
	}
	return []*simPod{s}
}

func start(t *rapid.T, s *simPod) {
	for i := range s.pod.Spec.InitContainers {
		c := &s.pod.Spec.InitContainers[i]
		s.starts(ms(t, "init start", 50, 1000), c.Name)
		if !podstatus.IsSidecar(c) {
			s.exits(ms(t, "init work", 50, 5000), c.Name, 0)
		}
	}
	for _, c := range s.pod.Spec.Containers {
		s.starts(ms(t, "start", 10, 1000), c.Name)
	}
}

// crash lets the container exit again and again; the runtime keeps one attempt or two.
func crash(t *rapid.T, s *simPod) {
	for range rapid.IntRange(1, 4).Draw(t, "crashes") {
		s.exits(ms(t, "until crash", 5, 3000), "app", 1)
		if rapid.Bool().Draw(t, "back-off") {
			s.then(ms(t, "back-off begins", 5, 400), func(m *moment) { m.crashed = []string{"app"} })
			s.then(ms(t, "back-off", 1000, 15000), func(*moment) {})
		}
		s.starts(ms(t, "restart", 20, 800), "app")
		if keep := rapid.IntRange(1, 2).Draw(t, "kept"); len(s.moments[len(s.moments)-1].attempts) > keep {
			s.then(ms(t, "collected", 10, 5000), func(m *moment) { m.attempts = m.attempts[len(m.attempts)-keep:] })
		}
	}
}

// end stops the containers within their grace, then the pod is over and, if deleted, goes.
func end(t *rapid.T, s *simPod, evicted bool) {
	if !evicted {
		s.then(ms(t, "deleted", 2000, 30000), func(m *moment) { m.deleted = &metav1.Time{Time: at(m.at + 30*time.Second)} })
	} else {
		s.then(ms(t, "evicted", 2000, 30000), func(m *moment) { m.evicted = false })
	}
	first := len(s.moments)
	for _, c := range s.pod.Spec.Containers {
		s.exits(ms(t, "stop", 10, 14000), c.Name, 137)
	}
	s.block(first) // the kubelet waits for all of them
	s.then(ms(t, "over", 10, 1000), func(m *moment) { m.ended, m.evicted = true, evicted })
	s.then(ms(t, "no sandbox", 10, 2000), func(m *moment) { m.sandbox = false })
	if evicted {
		s.then(ms(t, "collected", 5000, 20000), func(m *moment) { m.attempts, m.dir = nil, false })
		return
	}
	s.then(ms(t, "gone", 8000, 12000), func(m *moment) { m.inAPI, m.admitted = false, false })
	s.then(ms(t, "cleaned up", 10, 20000), func(m *moment) { m.attempts, m.dir = nil, false })
}
