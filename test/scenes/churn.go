package scenes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/test/stock"
)

// Churning: pods come, crash, end and go all the time. Nothing is wrong with that.
func Churning(lasts time.Duration, pods int) Scene {
	var churn *churn
	return Scene{
		Name: fmt.Sprintf("%d pods churning", pods), What: fmt.Sprintf("for %v, pods are created, crash, end and are deleted, some of them by force", lasts),
		Break: func(_ context.Context, s *Stage) error {
			churn = newChurn(s, pods, time.Now().Add(lasts))
			return nil
		},
		Until: func(ctx context.Context, _ *Stage) error { return churn.step(ctx) },
		Mend:  func(ctx context.Context, _ *Stage) error { return churn.end(ctx) },
	}
}

// churn changes one pod of the stage in each step.
type churn struct {
	stage  *Stage
	random *rand.Rand
	names  []string
	until  time.Time
	count  int
	next   time.Time
}

// pace is the time between two changes: as many as two cores can follow.
const pace = 300 * time.Millisecond

func newChurn(s *Stage, pods int, end time.Time) *churn {
	c := &churn{stage: s, random: rand.New(rand.NewPCG(1, 2)), until: end}
	for i := range pods {
		c.names = append(c.names, fmt.Sprintf("churn-%d", i))
	}
	return c
}

// lives are what the containers of pods do, and whether they are restarted.
var lives = []struct {
	script  string
	restart v1.RestartPolicy
}{
	{stock.Forever, v1.RestartPolicyAlways},
	{"sleep 1", v1.RestartPolicyNever},
	{"sleep 2; false", v1.RestartPolicyNever},
	{"sleep 1; false", v1.RestartPolicyAlways},
	{"sleep 3; false", v1.RestartPolicyOnFailure},
	{"trap 'sleep 1; exit 0' TERM; " + stock.Forever, v1.RestartPolicyAlways},
}

// step creates a pod that is missing or deletes one, and returns nil when the time is over.
func (c *churn) step(ctx context.Context) error {
	if time.Now().After(c.until) {
		return nil
	}
	if time.Now().Before(c.next) {
		return notYet("%d changes so far", c.count)
	}
	c.next = time.Now().Add(pace)
	name := c.names[c.random.IntN(len(c.names))]
	_, err := c.stage.Pod(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		err = c.create(ctx, name)
	case err == nil:
		err = c.delete(ctx, name)
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return notYet("%d changes so far", c.count)
}

func (c *churn) create(ctx context.Context, name string) error {
	life := lives[c.random.IntN(len(lives))]
	pod := c.stage.Node.Pod(name, life.script)
	grace := int64(c.random.IntN(3))
	pod.Spec.RestartPolicy, pod.Spec.TerminationGracePeriodSeconds = life.restart, &grace
	pod.Spec.Volumes = []v1.Volume{{Name: "scratch", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}}}
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "scratch", MountPath: "/tmp"}}
	c.count++
	_, err := c.stage.Node.Admin().CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

func (c *churn) delete(ctx context.Context, name string) error {
	if c.random.IntN(3) > 0 {
		return nil // it may live for a while
	}
	options := metav1.DeleteOptions{}
	if c.random.IntN(4) == 0 {
		now := int64(0)
		options.GracePeriodSeconds = &now
	}
	c.count++
	return c.stage.Node.Admin().CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, name, options)
}

// end deletes the remaining pods.
func (c *churn) end(ctx context.Context) error {
	for _, name := range c.names {
		err := c.stage.Node.Admin().CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
