package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/guard/notify"
	"github.com/statusd/statusd/test/stock"
)

// sighting is a place that reports a fault, and the time until its report. A sighting without text is not
// awaited.
type sighting struct {
	text  string
	after time.Duration
}

func (s sighting) String() string {
	if s.text == "" {
		return "-"
	}
	return seconds(s.after)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// sightings are those of page, command line, condition and Event, in this order, and the report that the page has. They are
// printed with their times.
func (p *guarded) sightings(ctx context.Context, s scenario, noticed func(guard.Report) bool, changes <-chan v1.NodeCondition, old map[string]v1.Event, begin time.Time) (told guard.Report, all []sighting, err error) {
	all = make([]sighting, 4)
	errs := make([]error, len(all))
	var watching sync.WaitGroup
	see := func(i int, look func() (string, error)) {
		watching.Go(func() {
			text, err := look()
			all[i], errs[i] = sighting{text, time.Since(begin)}, err
		})
	}
	see(0, func() (text string, err error) {
		told, err = p.await(ctx, noticed)
		return fmt.Sprintf("the page: %s: %s", told.Health, guard.Summary(told.Verdict)), err
	})
	see(1, func() (string, error) { return p.awaitCommand(ctx, noticed) })
	if s.reason != "" {
		see(2, func() (string, error) { return until(ctx, changes, s.condition, s.reason) })
		see(3, func() (string, error) { return p.awaitEvent(ctx, s.event, old) })
	}
	watching.Wait()
	for _, sighting := range all {
		if sighting.text != "" {
			fmt.Printf("%s %s\n", seconds(sighting.after), strings.TrimSpace(sighting.text))
		}
	}
	return told, all, errors.Join(errs...)
}

// awaitCommand runs statusd guard until it reports the wanted state, and returns the output for an
// operator.
func (p *guarded) awaitCommand(ctx context.Context, wanted func(guard.Report) bool) (text string, err error) {
	guardCommand := func(args ...string) ([]byte, error) {
		// The exit code is the kubelet's health; the output has the command's own errors.
		output, err := exec.CommandContext(ctx, p.program, append([]string{"guard", "--socket", p.socket}, args...)...).Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(output) > 0 {
			err = nil
		}
		return output, err
	}
	err = stock.Await(ctx, func() error {
		output, err := guardCommand("-o", "json")
		if err != nil {
			return err
		}
		var report guard.Report
		if err := json.Unmarshal(output, &report); err != nil {
			return err
		}
		if !wanted(report) {
			return fmt.Errorf("statusd guard says %s: %s", report.Health, guard.Summary(report.Verdict))
		}
		output, err = guardCommand()
		text = "$ statusd guard\n" + string(output)
		return err
	})
	return text, err
}

// awaitHealthyNode waits until the condition says that the kubelet is healthy, and nothing else.
func (p *guarded) awaitHealthyNode(ctx context.Context) error {
	return stock.Await(ctx, func() error {
		node, err := p.stage.Node.Admin().CoreV1().Nodes().Get(ctx, p.stage.Node.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == notify.ConditionType && c.Reason == notify.ReasonHealthy {
				return nil
			}
		}
		return fmt.Errorf("the Node has no condition %s with reason %s", notify.ConditionType, notify.ReasonHealthy)
	})
}

// conditions are what the condition of the Node becomes from now on.
func (p *guarded) conditions(ctx context.Context) (<-chan v1.NodeCondition, error) {
	node := p.stage.Node
	watch, err := node.Admin().CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + node.Name})
	if err != nil {
		return nil, err
	}
	changes := make(chan v1.NodeCondition, 1000)
	go func() {
		defer watch.Stop()
		defer close(changes)
		for event := range watch.ResultChan() {
			object, ok := event.Object.(*v1.Node)
			if !ok {
				continue
			}
			for _, c := range object.Status.Conditions {
				if c.Type == notify.ConditionType {
					select {
					case changes <- c:
					case <-ctx.Done():
						return
					}
				}
			}
		}
	}()
	return changes, nil
}

// until waits for a condition.
func until(ctx context.Context, changes <-chan v1.NodeCondition, status v1.ConditionStatus, reason string) (string, error) {
	for {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case c, open := <-changes:
			if !open {
				return "", errors.New("the watch of the Node has ended")
			}
			if c.Status == status && c.Reason == reason {
				return fmt.Sprintf("condition %s=%s, reason %s: %s", c.Type, c.Status, c.Reason, c.Message), nil
			}
		}
	}
}

// events are the Node's Events by a key that distinguishes Events and their counts.
func (p *guarded) events(ctx context.Context) (map[string]v1.Event, error) {
	list, err := p.stage.Node.Admin().CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := make(map[string]v1.Event, len(list.Items))
	for _, e := range list.Items {
		all[string(e.UID)+"/"+e.ResourceVersion] = e
	}
	return all, nil
}

// awaitEvent waits for an Event that is not in old.
func (p *guarded) awaitEvent(ctx context.Context, reason guard.NoticeKind, old map[string]v1.Event) (text string, err error) {
	err = stock.Await(ctx, func() error {
		events, err := p.events(ctx)
		if err != nil {
			return err
		}
		for key, e := range events {
			if _, seen := old[key]; !seen && e.Reason == string(reason) {
				text = fmt.Sprintf("Event %s: %s", e.Reason, e.Message)
				return nil
			}
		}
		return fmt.Errorf("there is no Event %s", reason)
	})
	return text, err
}
