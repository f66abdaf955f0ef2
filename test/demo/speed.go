package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/internal/run"
	"github.com/statusd/statusd/runtime/process"
)

const (
	// speedSingles is how many pods are started one after the other.
	speedSingles = 10
	speedFew     = 50
	speedMany    = 200
	speedRounds  = 2
	// waveTimeout is how long all pods may take to be Ready, or to be gone.
	waveTimeout = 2 * time.Minute
)

// speedSide is one of two versions of statusd, with what was measured of it in each round.
type speedSide struct {
	name, program string
	values        map[string][]float64
}

// speedRows are the rows of the table, and their units.
var speedRows = [][2]string{
	{"1 pod Ready", "ms"}, {"50 pods Ready", "s"}, {"200 pods Ready", "s"}, {"200 pods deleted", "s"},
	{"statusd with 200 idle pods: CPU of one core", "%"}, {"statusd with 200 idle pods: resident", "MiB"}, {"each shim: proportional", "MiB"},
}

// speed starts and deletes ordinary pods on another statusd and on this one in turns, as the node of one cluster with
// controllers.
func (d *demo) speed(ctx context.Context, beside string) (err error) {
	if beside == "" {
		return errors.New("speed: want the program of the other version: demo --beside PROGRAM speed")
	}
	if d.state, err = os.MkdirTemp("", "statusd-speed-"); err != nil {
		return err
	}
	defer os.RemoveAll(d.state)
	server, admin, err := d.startControlPlane(ctx, withControllers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stopControlPlane(ctx, server)) }()
	kubeconfig, err := server.NodeKubeconfig(nodeName)
	if err != nil {
		return err
	}
	other := &speedSide{name: "before", program: beside, values: map[string][]float64{}}
	this := &speedSide{name: "now", program: d.statusd, values: map[string][]float64{}}
	turns := []*speedSide{other, this}
	for round := range speedRounds {
		for _, side := range turns {
			d.say("\nround %d: %s", round+1, side.name)
			if err := d.measure(ctx, admin, kubeconfig, side); err != nil {
				return fmt.Errorf("%s: %w", side.program, err)
			}
		}
		slices.Reverse(turns)
	}
	d.say("\n| | before | now | now : before |\n|---|--:|--:|--:|")
	for _, row := range speedRows {
		before, now := mean(other.values[row[0]]), mean(this.values[row[0]])
		d.say("| %s | %.3g %s | %.3g %s | %.2f |", row[0], before, row[1], now, row[1], now/before)
	}
	return nil
}

// measure starts a version of statusd, with a state directory of its own, measures, and leaves no pod.
func (d *demo) measure(ctx context.Context, admin kubernetes.Interface, kubeconfig string, side *speedSide) (err error) {
	config, err := d.config(side.name)
	if err != nil {
		return err
	}
	config.Kubeconfig, config.Node.MaxPods = kubeconfig, speedMany+10
	text, err := yaml.Marshal(commonSettings(config))
	if err != nil {
		return err
	}
	d.statusd = side.program
	c := &crowd{demo: d, size: speedMany, admin: admin}
	if c.daemon, err = d.startWith(config, text); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stopStatusd(ctx, c.daemon)) }()
	if err := awaitNode(ctx, admin, c.daemon); err != nil {
		return err
	}
	record := func(row string, value float64) {
		d.say("%-44s %.3g", row, value)
		side.values[row] = append(side.values[row], value)
	}
	// The Node may still be Ready from the version before: the first pod shows that this one is at work.
	if err := c.wave(ctx, 1, func(time.Duration) error { return nil }, nil); err != nil {
		return err
	}
	for range speedSingles {
		if err := c.wave(ctx, 1, func(took time.Duration) error {
			record("1 pod Ready", took.Seconds()*1000)
			return nil
		}, nil); err != nil {
			return err
		}
	}
	if err := c.wave(ctx, speedFew, func(took time.Duration) error {
		record("50 pods Ready", took.Seconds())
		return nil
	}, nil); err != nil {
		return err
	}
	return c.wave(ctx, speedMany, func(took time.Duration) error {
		record("200 pods Ready", took.Seconds())
		before, after, err := c.watch(ctx, watched, func() error { return nil })
		if err != nil {
			return err
		}
		record("statusd with 200 idle pods: CPU of one core", 100*(after.statusd.cpu-before.statusd.cpu).Seconds()/watched.Seconds())
		record("statusd with 200 idle pods: resident", float64(after.statusd.resident)/1024)
		sum := int64(0)
		for _, shim := range after.shims {
			sum += shim.proportional
		}
		record("each shim: proportional", float64(sum)/1024/float64(len(after.shims)))
		return nil
	}, func(took time.Duration) { record("200 pods deleted", took.Seconds()) })
}

func mean(values []float64) (sum float64) {
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}

// commonSettings are the settings of a config that all versions of statusd have.
func commonSettings(c run.Config) map[string]any {
	return map[string]any{
		"apiVersion": c.APIVersion, "kind": c.Kind,
		"nodeName": c.NodeName, "kubeconfig": c.Kubeconfig, "stateDir": c.StateDir, "manifests": "",
		"healthzBindAddress": c.HealthzBindAddress, "allowPodsWithoutIsolation": true,
		"node":     map[string]any{"maxPods": c.Node.MaxPods, "taints": []string{}},
		"server":   map[string]any{"bindAddress": ""},
		"eviction": map[string]any{"hard": eviction.Disabled()},
	}
}

// wave creates pods, waits until all are Ready and deletes them. wave reports how long both took.
func (c *crowd) wave(ctx context.Context, size int, ready func(time.Duration) error, deleted func(time.Duration)) error {
	w, err := c.watchReadiness(ctx)
	if err != nil {
		return err
	}
	defer w.events.Stop()
	begin := time.Now()
	for i := range size {
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("speed-%03d", i), Namespace: metav1.NamespaceDefault},
			Spec: v1.PodSpec{
				NodeName:   nodeName,
				Containers: []v1.Container{{Name: "main", Image: process.Image, Command: []string{"sleep", "1000000"}}},
			},
		}
		if _, err := c.admin.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := w.follow(ctx, waveTimeout, func() bool { return w.ready == size }); err != nil {
		return err
	}
	if w.ready < size {
		return fmt.Errorf("%d of %d pods are Ready after %s; see %s", w.ready, size, waveTimeout, c.daemon.logFile)
	}
	if err := ready(time.Since(begin)); err != nil {
		return err
	}
	begin = time.Now()
	if err := c.admin.CoreV1().Pods(metav1.NamespaceDefault).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	if err := w.follow(ctx, waveTimeout, func() bool { return len(w.pods) == 0 }); err != nil {
		return err
	}
	if len(w.pods) > 0 {
		return fmt.Errorf("%d of %d pods are not deleted after %s; see %s", len(w.pods), size, waveTimeout, c.daemon.logFile)
	}
	if deleted != nil {
		deleted(time.Since(begin))
	}
	return c.awaitNothingLeft(ctx)
}
