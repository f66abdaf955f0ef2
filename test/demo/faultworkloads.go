package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/runtime/process"
)

// workloads have the controllers of a cluster make pods on the node: a Deployment whose pods run on, one whose pods crash, a StatefulSet, whose pods come
// back under their names, and Jobs.
type workloads struct {
	admin  kubernetes.Interface
	random *rand.Rand
	run    string // distinguishes the containers of this run
	done   string // directory
	size   int32  // replicas of each
	jobs   int    // that were created
}

const (
	deployment, crashes, stateful = "web", "crashes", "db"
	// atATime is how many Jobs there are.
	atATime = 2
)

// podName is in the environment of each container of a workload.
var podName = v1.EnvVar{Name: "POD_NAME", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}}

// template makes the pods of a workload.
func (w *workloads) template(app, life, script string, policy v1.RestartPolicy) v1.PodTemplateSpec {
	no, grace := false, int64(2)
	return v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app, lifeLabel: life}},
		Spec: v1.PodSpec{
			AutomountServiceAccountToken: &no, RestartPolicy: policy, TerminationGracePeriodSeconds: &grace,
			Containers: []v1.Container{{
				Name: "c0", Image: process.Image, Command: []string{"sh", "-c", script},
				Env: []v1.EnvVar{{Name: runVariable[:len(runVariable)-1], Value: w.run}, podName},
			}},
		},
	}
}

// create makes all but the Jobs, and returns the names of the pods that there must always be.
func (w *workloads) create(ctx context.Context) (names []string, err error) {
	apps := w.admin.AppsV1()
	for app, life := range map[string]string{deployment: lasting, crashes: crashing} {
		script := "sleep 1000000"
		if life == crashing {
			script = "sleep 2; exit 1"
		}
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		_, failed := apps.Deployments(metav1.NamespaceDefault).Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: app},
			Spec:       appsv1.DeploymentSpec{Replicas: &w.size, Selector: selector, Template: w.template(app, life, script, v1.RestartPolicyAlways)},
		}, metav1.CreateOptions{})
		err = errors.Join(err, failed)
	}
	_, failed := apps.StatefulSets(metav1.NamespaceDefault).Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: stateful},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &w.size, ServiceName: stateful, PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": stateful}},
			Template: w.template(stateful, lasting, "sleep 1000000", v1.RestartPolicyAlways),
		},
	}, metav1.CreateOptions{})
	for i := range w.size {
		names = append(names, fmt.Sprintf("%s-%d", stateful, i))
	}
	return names, errors.Join(err, failed)
}

// change deletes a pod of a workload, every other time by force, scales a Deployment, and replaces Jobs that have ended.
func (w *workloads) change(ctx context.Context, pods []v1.Pod) error {
	var owned []v1.Pod
	for _, pod := range pods {
		if metav1.GetControllerOf(&pod) != nil && pod.DeletionTimestamp == nil && pod.Labels[lifeLabel] != job {
			owned = append(owned, pod)
		}
	}
	if len(owned) > 0 {
		victim, options := owned[w.random.IntN(len(owned))], metav1.DeleteOptions{}
		if w.random.IntN(2) == 0 {
			options = *metav1.NewDeleteOptions(0)
		}
		if err := w.admin.CoreV1().Pods(victim.Namespace).Delete(ctx, victim.Name, options); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	scale, err := json.Marshal(map[string]any{"spec": map[string]any{"replicas": w.size - w.random.Int32N(2)}})
	if err != nil {
		return err
	}
	if _, err := w.admin.AppsV1().Deployments(metav1.NamespaceDefault).Patch(ctx, deployment, types.StrategicMergePatchType, scale, metav1.PatchOptions{}); err != nil {
		return err
	}
	return w.changeJobs(ctx)
}

// changeJobs deletes the Jobs that have ended, and creates others.
func (w *workloads) changeJobs(ctx context.Context) error {
	jobs := w.admin.BatchV1().Jobs(metav1.NamespaceDefault)
	list, err := jobs.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	left := len(list.Items)
	background := metav1.DeletePropagationBackground
	for _, j := range list.Items {
		if j.Status.CompletionTime == nil {
			continue
		}
		if err := jobs.Delete(ctx, j.Name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			return err
		}
		left--
	}
	for ; left < atATime; left++ {
		w.jobs++
		completions, tries := int32(2), int32(1000)
		script := fmt.Sprintf("sleep %d; : > %s/$POD_NAME", 1+w.random.IntN(10), w.done)
		if _, err := jobs.Create(ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", job, w.jobs)},
			Spec:       batchv1.JobSpec{Completions: &completions, Parallelism: &completions, BackoffLimit: &tries, Template: w.template(job, job, script, v1.RestartPolicyNever)},
		}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes the workloads; the garbage collector deletes their pods.
func (w *workloads) remove(ctx context.Context) (err error) {
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	for _, app := range []string{deployment, crashes} {
		err = errors.Join(err, w.admin.AppsV1().Deployments(metav1.NamespaceDefault).Delete(ctx, app, options))
	}
	return errors.Join(err, w.admin.AppsV1().StatefulSets(metav1.NamespaceDefault).Delete(ctx, stateful, options),
		w.admin.BatchV1().Jobs(metav1.NamespaceDefault).DeleteCollection(ctx, options, metav1.ListOptions{}))
}

// newWorkloads share the directory of what Jobs have done with the pods of the population.
func newWorkloads(p *population, options faultOptions) *workloads {
	return &workloads{admin: p.admin, random: rand.New(rand.NewPCG(options.seed, 1<<32)), run: p.run, done: filepath.Clean(p.done), size: int32(max(1, options.pods/10))}
}
