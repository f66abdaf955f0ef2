package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/stock"
)

// known is after how long the manager knows the newest version of the server: it asks each minute.
const known = 75 * time.Second

// compareTurns runs both kubelets in turns on one node, with its pods running, and with faults of the journal in between: the
// API's statuses of the pods must be the same under each, and true.
func compareTurns(ctx context.Context, agents []agent) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Minute, errors.New("not within 30 minutes"))
	defer cancel()
	programs := map[string]string{}
	for _, a := range agents {
		programs[a.name] = a.program
	}
	readOnly, err := freePort()
	if err != nil {
		return err
	}
	n, err := agent{program: programs["statusd"]}.startNode(ctx, nil, "turns", "", fmt.Sprintf("readOnlyPort: %d\n", readOnly))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	t := &turns{node: n, programs: programs, signs: filepath.Join(n.Dir(), "signs"), readOnly: readOnly}
	if err := t.run(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, n.Tail(10))
	}
	campaign.Out.Close()
	fmt.Printf("%d turns: what the API says of the pods was the same after each\n", t.count)
	return nil
}

// turns is a node whose kubelet changes.
type turns struct {
	node     *stock.Node
	programs map[string]string // of the kubelets
	signs    string            // a directory in which containers leave files
	readOnly int
	count    int
	jobs     int
	want     map[string]string // what the API says of each pod, by its name
}

func (t *turns) run(ctx context.Context) error {
	if err := os.Mkdir(t.signs, 0o777); err != nil {
		return err
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	journal := filepath.Join(t.node.Kubelet.Root(), "statusd", "journal.db")
	old, err := os.ReadFile(filepath.Join(t.node.Root(), journal))
	if err != nil {
		return fmt.Errorf("the journal below the kubelet's root directory: %w", err)
	}
	journal = filepath.Join(t.node.Root(), journal)
	down := func(job string) func(context.Context) error {
		return func(ctx context.Context) error { return t.endUnseen(ctx, job) }
	}
	for _, turn := range []struct {
		what, kubelet string
		// before happens while the kubelet of the turn before still runs, between after it was killed.
		before, between func(context.Context) error
		job             bool            // one ends during the turn
		gates           map[string]bool // the kubelet's feature gates
		args            []string        // more of its arguments
	}{
		{what: "downgrade", kubelet: "stock", job: true},
		{what: "upgrade", kubelet: "statusd", job: true},
		{what: "restart", kubelet: "statusd"},
		{what: "downgrade with an end that only the journal has", kubelet: "stock", before: down("kept-1")},
		{what: "upgrade after it", kubelet: "statusd"},
		{what: "damaged journal with an end that only it has", kubelet: "statusd", before: down("kept-2"), between: func(context.Context) error { return damage(journal) }, job: true},
		{what: "journal of before", kubelet: "statusd", between: func(context.Context) error { return os.WriteFile(journal, old, 0o600) }, job: true},
		{what: "empty file in the place of the journal", kubelet: "statusd", between: func(context.Context) error { return os.Truncate(journal, 0) }, job: true},
		{what: "full disk", kubelet: "statusd", between: t.fill, job: true},
		{what: "read-only disk", kubelet: "statusd", between: t.protect, job: true},
		{what: "without the condition of the sandbox", kubelet: "statusd", job: true, gates: map[string]bool{"PodReadyToStartContainersCondition": false}},
		{what: "another root directory", kubelet: "statusd", job: true, args: []string{"--root-dir", filepath.Join(t.node.Dir(), "disk", "moved")}},
		{what: "the root directory of before", kubelet: "statusd", job: true},
		{what: "restart after the API server was restored from a backup", kubelet: "statusd", before: t.restore("kept-3"), job: true},
		{what: "downgrade in the end", kubelet: "stock", job: true},
	} {
		t.node.Kubelet.FeatureGates, t.node.Kubelet.Args = turn.gates, turn.args
		if err := t.take(ctx, turn.what, turn.kubelet, turn.before, turn.between, turn.job); err != nil {
			return fmt.Errorf("%s: %w", turn.what, err)
		}
	}
	return nil
}

// begin starts pods that all turns keep, and the jobs.
func (t *turns) begin(ctx context.Context) error {
	static := t.pod("static", "sleep 100000 & wait")
	static.APIVersion, static.Kind, static.Spec.NodeName = "v1", "Pod", ""
	text, err := yaml.Marshal(static)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(t.node.Manifests(), "static.yaml"), text, 0o644); err != nil {
		return err
	}
	again := t.pod("again", "test -e /signs/again || { : >/signs/again; exit 1; }; sleep 100000 & wait")
	probed := t.pod("probed", "sleep 100000 & wait")
	probed.Spec.Containers[0].ReadinessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"/bin/true"}}}, PeriodSeconds: 2, TimeoutSeconds: 30}
	pods := []*v1.Pod{again, probed}
	for _, name := range []string{"kept-1", "kept-2", "kept-3"} {
		pods = append(pods, t.job(name))
	}
	t.want = map[string]string{"static-" + t.node.Name: ""}
	for _, pod := range pods {
		t.want[pod.Name] = ""
		if _, err := t.node.Create(ctx, pod); err != nil {
			return err
		}
	}
	return stock.Await(ctx, func() error {
		for name := range t.want {
			pod, err := t.node.Admin().CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !stock.Ready(pod) || name == "again" && pod.Status.ContainerStatuses[0].RestartCount != 1 {
				return fmt.Errorf("pod %s is not ready", name)
			}
			t.want[name] = factsOf(pod)
		}
		return nil
	})
}

func (t *turns) pod(name, script string) *v1.Pod {
	pod := t.node.Pod(name, "trap 'exit 0' TERM; "+script)
	pod.Namespace = metav1.NamespaceDefault
	pod.Spec.Volumes = []v1.Volume{{Name: "signs", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: t.signs}}}}
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "signs", MountPath: "/signs"}}
	return pod
}

// job is a pod that ends with exit code 0 when there is a file of its name.
func (t *turns) job(name string) *v1.Pod {
	pod := t.pod(name, "while ! test -e /signs/end-"+name+"; do sleep 1; done")
	pod.Spec.RestartPolicy = v1.RestartPolicyNever
	return pod
}

func (t *turns) end(name string) error {
	t.want[name] = "" // from now on another one
	return os.WriteFile(filepath.Join(t.signs, "end-"+name), nil, 0o644)
}

// endUnseen lets a job end while the API server is down. The kubelet has seen the end when it returns.
func (t *turns) endUnseen(ctx context.Context, name string) error {
	counter := func() (float64, error) {
		counts, err := campaign.Scrape(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", t.readOnly))
		return counts["kubelet_terminated_containers_total"], err
	}
	before, err := counter()
	if err != nil {
		return err
	}
	if err := t.node.API.Kill(); err != nil {
		return err
	}
	if err := t.end(name); err != nil {
		return err
	}
	return stock.Await(ctx, func() error {
		now, err := counter()
		if err == nil && now == before {
			err = errors.New("the kubelet has not seen the end")
		}
		return err
	})
}

// take ends the kubelet, starts the one of the turn, and compares the pods once it has started a new one.
func (t *turns) take(ctx context.Context, what, kubelet string, before, between func(context.Context) error, job bool) error {
	fmt.Fprintf(campaign.Out, "%s: %s\n", kubelet, what)
	if before != nil {
		if err := before(ctx); err != nil {
			return err
		}
	}
	t.node.Kubelet.Process().Kill()
	if between != nil {
		if err := between(ctx); err != nil {
			return err
		}
	}
	if before != nil {
		if err := t.node.API.Restart(ctx); err != nil {
			return err
		}
	}
	t.node.Kubelet.Binary = t.programs[kubelet]
	if err := t.node.Kubelet.Start(); err != nil {
		return err
	}
	t.count, t.jobs = t.count+1, t.jobs+1
	name := fmt.Sprintf("job-%d", t.jobs)
	if _, err := t.node.Create(ctx, t.job(name)); err != nil {
		return err
	}
	if _, err := t.node.AwaitPod(ctx, metav1.NamespaceDefault, name, "ready", stock.Ready); err != nil {
		return err
	}
	t.want[name] = ""
	if job {
		if err := t.end(name); err != nil {
			return err
		}
	}
	return stock.Await(ctx, func() error { return t.compare(ctx) })
}

// compare returns nil if the API's status of each pod is the same as before, or Succeeded for a pod that has ended since.
func (t *turns) compare(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(t.want)) {
		pod, err := t.node.Admin().CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = os.Stat(filepath.Join(t.signs, "end-"+name))
		ended := err == nil
		switch got, want := factsOf(pod), t.want[name]; {
		case want == "" && ended && pod.Status.Phase != v1.PodSucceeded, want == "" && !ended && !stock.Ready(pod):
			return fmt.Errorf("pod %s (ended: %t) is %s", name, ended, got)
		case want == "":
			t.want[name] = got
		case got != want:
			return fmt.Errorf("pod %s is %s, want %s as before", name, got, want)
		}
	}
	return nil
}

// factsOf is what must not depend on the kubelet.
func factsOf(pod *v1.Pod) string {
	text := fmt.Sprintf("%s, ready %t", pod.Status.Phase, stock.Ready(pod))
	if _, static := pod.Annotations[v1.MirrorPodAnnotationKey]; !static { // the stock kubelet lets a static pod begin again when it starts
		text += fmt.Sprintf(", since %v", pod.Status.StartTime)
	}
	for _, c := range pod.Status.ContainerStatuses {
		text += fmt.Sprintf("; %s restarted %d times", c.ContainerID, c.RestartCount)
		if c.State.Terminated != nil {
			text += fmt.Sprintf(", ended with %d", c.State.Terminated.ExitCode)
		}
	}
	return text
}

// protect makes the disk of fill read-only.
func (t *turns) protect(ctx context.Context) error {
	return t.mount(ctx, "-o", "remount,ro", filepath.Join(t.node.Kubelet.Root(), "statusd"))
}

// mount runs the command of this name on the node.
func (t *turns) mount(ctx context.Context, args ...string) error {
	node := "--mount=" + filepath.Join(filepath.Dir(t.node.Root()), "ns", "mnt")
	output, err := exec.CommandContext(ctx, "nsenter", append([]string{node, "mount"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mount: %w: %s", err, output)
	}
	return nil
}

// damage changes bytes in the middle of a file, and in the copy that is kept beside it.
func damage(file string) error {
	for _, name := range []string{file, file + ".good"} {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		copy(content[len(content)/2:], bytes.Repeat([]byte{0xa5}, 64))
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// restore lets a job end while the kubelet runs, then takes the API server back to a backup from before the end, and waits until the
// server has the end again. The backup is so old that the server has not reached the newest version that the kubelet knows.
func (t *turns) restore(job string) func(context.Context) error {
	return func(ctx context.Context) error {
		data, backup := filepath.Join(t.node.API.DataDir(), "etcd"), filepath.Join(t.node.Dir(), "backup")
		replace := func(from, to string) error {
			if err := t.node.API.Kill(); err != nil {
				return err
			}
			if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
				return err
			}
			return t.node.API.Restart(ctx)
		}
		if err := replace(data, backup); err != nil {
			return err
		}
		if err := t.end(job); err != nil {
			return err
		}
		if err := stock.Await(ctx, func() error { return t.compare(ctx) }); err != nil {
			return err
		}
		if err := t.write(ctx, 1000); err != nil {
			return err
		}
		if err := campaign.Pause(ctx, known); err != nil {
			return err
		}
		if err := replace(backup, data); err != nil {
			return err
		}
		return stock.Await(ctx, func() error { return t.compare(ctx) })
	}
}

// write changes the API server's data as often.
func (t *turns) write(ctx context.Context, times int) error {
	maps := t.node.Admin().CoreV1().ConfigMaps(metav1.NamespaceDefault)
	if _, err := maps.Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	for i := range times {
		change := fmt.Appendf(nil, `{"data":{"number":"%d"}}`, i)
		if _, err := maps.Patch(ctx, "other", types.MergePatchType, change, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// fill puts a small disk in the place of the directory of journal and history, and fills it.
func (t *turns) fill(ctx context.Context) error {
	dir := filepath.Join(t.node.Kubelet.Root(), "statusd")
	if err := t.mount(ctx, "-t", "tmpfs", "-o", "size=64k", "tmpfs", dir); err != nil {
		return err
	}
	for i := 0; ; i++ {
		if err := os.WriteFile(filepath.Join(t.node.Root(), dir, fmt.Sprintf("filler-%d", i)), make([]byte, os.Getpagesize()), 0o600); err != nil {
			return nil // it is full
		}
	}
}
