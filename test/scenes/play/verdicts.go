package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/guard/notify"
	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/scenes"
	"github.com/statusd/statusd/test/stock"
)

// verdicts watches a guard whose kubelet is always healthy: any other verdict or action is false.
type verdicts struct {
	stage    *scenes.Stage
	observer *scenes.Observer
	begin    time.Time
	stop     context.CancelFunc
	watching sync.WaitGroup

	// What follows is for the goroutine that watches, until it has ended.
	since    time.Time // of the last verdict that was seen
	restarts int
	wrong    []string
	err      error
}

// watchVerdicts starts a guard with the standard policy, waits until the kubelet is healthy, and watches.
func watchVerdicts(ctx context.Context, stage *scenes.Stage) (*verdicts, error) {
	observer, err := stage.Guard(ctx, "")
	if err != nil {
		return nil, err
	}
	v := &verdicts{stage: stage, observer: observer}
	err = stock.Await(ctx, func() error {
		report, err := observer.Client().Guard(ctx)
		if err == nil && report.Health != guard.Healthy {
			err = fmt.Errorf("the kubelet is %s: %s", report.Health, guard.Summary(report.Verdict))
		}
		v.since, v.restarts = report.Since, len(report.Restarts)
		return err
	})
	if err == nil {
		err = v.conditionSince(ctx, func(status string, _ time.Time) error {
			if status != "True" {
				return errors.New("the Node does not have the condition yet")
			}
			return nil
		})
	}
	if err != nil {
		observer.Close()
		return nil, err
	}
	watched, stop := context.WithCancel(ctx)
	v.begin, v.stop = time.Now(), stop
	v.watching.Go(func() { v.watch(watched) })
	return v, nil
}

// watch polls frequently. The start time of a verdict reveals verdicts that come and go between two polls.
func (v *verdicts) watch(ctx context.Context) {
	for campaign.Pause(ctx, 500*time.Millisecond) == nil {
		report, err := v.observer.Client().Guard(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			v.err = errors.Join(v.err, fmt.Errorf("the guard does not answer: %w", err))
			return
		}
		v.take(report)
	}
}

// take counts each verdict once, and each restart.
func (v *verdicts) take(report guard.Report) {
	if !report.Since.Equal(v.since) {
		v.since = report.Since
		v.add("verdict %s since %s: %s", report.Health, report.Since.Format(time.RFC3339), guard.Summary(report.Verdict))
	}
	for ; v.restarts < len(report.Restarts); v.restarts++ {
		r := report.Restarts[v.restarts]
		v.add("restart at %s: %s", r.At.Format(time.RFC3339), r.Reason)
	}
}

func (v *verdicts) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Println("  wrong:", text)
	v.wrong = append(v.wrong, text)
}

// end returns everything that was wrong: verdicts, restarts, changes of the condition, and Events.
func (v *verdicts) end(ctx context.Context) ([]string, error) {
	v.stop()
	v.watching.Wait()
	defer v.observer.Close()
	err := v.conditionSince(ctx, func(status string, since time.Time) error {
		if status != "True" || since.After(v.begin) {
			v.add("condition %s=%s since %s", notify.ConditionType, status, since.Format(time.RFC3339))
		}
		return nil
	})
	if err != nil {
		return v.wrong, errors.Join(v.err, err)
	}
	events, err := v.stage.Node.Admin().CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Node"})
	if err != nil {
		return v.wrong, errors.Join(v.err, err)
	}
	for _, e := range events.Items {
		switch guard.NoticeKind(e.Reason) {
		case guard.NoticeUnhealthy, guard.NoticeRestarted, guard.NoticeSuppressed, guard.NoticeHealthy:
			if e.LastTimestamp.After(v.begin) {
				v.add("Event %s: %s", e.Reason, e.Message)
			}
		}
	}
	return v.wrong, v.err
}

// conditionSince waits until check accepts the condition of the Node; there may be none yet.
func (v *verdicts) conditionSince(ctx context.Context, check func(status string, since time.Time) error) error {
	return stock.Await(ctx, func() error {
		node, err := v.stage.Node.Admin().CoreV1().Nodes().Get(ctx, v.stage.Node.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == notify.ConditionType {
				return check(string(c.Status), c.LastTransitionTime.Time)
			}
		}
		return check("", time.Time{})
	})
}
