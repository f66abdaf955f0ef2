package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/statusd/statusd/runtime/process"
)

// lifeLabel says what the containers of a pod do by themselves.
const (
	lifeLabel = "statusd-faults"
	lasting   = "lasting" // run until they are ended
	crashing  = "crashing"
	job       = "job" // end well
	failing   = "failing"
)

// population is the pods of the node.
type population struct {
	manifests, done string // directories
	run             string
	workloads       *workloads
	admin           kubernetes.Interface
	random          *rand.Rand
	size, created   int
	names           []string        // of the API
	damaged         map[string]bool // pods with a damaged record: how they ended may be unknown
}

func newPopulation(dir, manifests string, admin kubernetes.Interface, options faultOptions) (*population, error) {
	p := &population{
		manifests: manifests, done: filepath.Join(dir, "done"), run: filepath.Base(dir), admin: admin, size: options.pods,
		random: rand.New(rand.NewPCG(options.seed, math.MaxUint64)), damaged: map[string]bool{},
	}
	for _, made := range []string{p.manifests, p.done} {
		if err := os.Mkdir(made, 0o755); err != nil {
			return nil, err
		}
	}
	p.workloads = newWorkloads(p, options)
	return p, nil
}

// create creates all pods: one in five of those that no controller makes is static.
func (p *population) create(ctx context.Context) error {
	lives := []string{lasting, job, crashing, lasting, failing}
	for i := range p.size {
		if err := p.add(ctx, lives[i%len(lives)], i%len(lives) == 0); err != nil {
			return err
		}
	}
	names, err := p.workloads.create(ctx)
	p.names = append(p.names, names...)
	return err
}

func (p *population) add(ctx context.Context, life string, static bool) error {
	p.created++
	name := fmt.Sprintf("%s-%03d", life, p.created)
	pod := p.pod(name, life)
	if !static {
		p.names = append(p.names, name)
		_, err := p.admin.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	}
	pod.Name = "static-" + name
	p.names = append(p.names, pod.Name+"-"+nodeName)
	text, err := yaml.Marshal(pod)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.manifests, name+".yaml"), text, 0o644)
}

// pod has two containers every other time, and a volume.
func (p *population) pod(name, life string) *v1.Pod {
	no, grace := false, int64(2)
	seconds := 3 + p.random.IntN(40)
	policy, script := v1.RestartPolicyAlways, "sleep 1000000"
	switch life {
	case crashing:
		script = fmt.Sprintf("sleep %d; exit 1", 1+seconds/4)
	case job:
		policy, script = v1.RestartPolicyNever, fmt.Sprintf("sleep %d; : > %s", seconds, filepath.Join(p.done, name))
	case failing:
		policy, script = v1.RestartPolicyNever, fmt.Sprintf("sleep %d; exit 3", seconds)
	}
	pod := &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault, Labels: map[string]string{lifeLabel: life}},
		Spec: v1.PodSpec{
			NodeName: nodeName, AutomountServiceAccountToken: &no, RestartPolicy: policy, TerminationGracePeriodSeconds: &grace,
			Volumes: []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}},
		},
	}
	containers := 1
	if policy == v1.RestartPolicyAlways {
		containers += p.created % 2
	}
	for i := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{
			Name: fmt.Sprintf("c%d", i), Image: process.Image, Command: []string{"sh", "-c", script},
			Env:          []v1.EnvVar{{Name: runVariable[:len(runVariable)-1], Value: p.run}},
			VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/run/data"}},
		})
	}
	return pod
}

// change keeps changing the pods: one container is killed every other time, ended pods are replaced, and so are pods of controllers.
func (p *population) change(ctx context.Context, m *machine) error {
	if p.random.IntN(2) == 0 {
		if err := p.killOne(m); err != nil {
			return err
		}
	}
	list, err := p.admin.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if err := p.workloads.change(ctx, list.Items); err != nil {
		return err
	}
	for _, pod := range list.Items {
		if metav1.GetControllerOf(&pod) != nil && pod.Annotations[v1.MirrorPodAnnotationKey] == "" || !ended(&pod) || pod.DeletionTimestamp != nil || p.random.IntN(2) == 0 {
			continue
		}
		if err := p.admin.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		p.names = slices.DeleteFunc(p.names, func(name string) bool { return name == pod.Name })
		if err := p.add(ctx, pod.Labels[lifeLabel], false); err != nil {
			return err
		}
	}
	return nil
}

func ended(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodFailed || pod.Status.Phase == v1.PodSucceeded
}

// killOne kills the processes of one container.
func (p *population) killOne(m *machine) error {
	processes, err := m.processes()
	processes = slices.DeleteFunc(processes, func(p member) bool { return p.container == "" })
	if err != nil || len(processes) == 0 {
		return err
	}
	victim := processes[p.random.IntN(len(processes))]
	for _, other := range processes {
		if other.container == victim.container {
			_ = syscall.Kill(other.pid, syscall.SIGKILL)
		}
	}
	return nil
}

// remove removes all pods.
func (p *population) remove(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(p.manifests, "*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	if err := p.workloads.remove(ctx); err != nil {
		return err
	}
	for _, name := range p.names {
		err := p.admin.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
