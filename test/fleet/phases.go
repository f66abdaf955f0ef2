package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/test/campaign"
)

// idlePhase watches the leases while nothing happens. It begins when each lease was renewed since the contender was stopped.
func (m *measurement) idlePhase(ctx context.Context) error {
	if err := campaign.Await(ctx, 200*time.Millisecond, func() error {
		if n := m.seen.since(m.continued); n < m.nodes {
			return fmt.Errorf("%d of %d leases are renewed", n, m.nodes)
		}
		return nil
	}); err != nil {
		return err
	}
	m.seen.leases() // those so far were stopped
	requests, err := m.count(ctx, besidesLeases)
	if err != nil {
		return err
	}
	if m.name != "kwok" {
		m.c.ask("withdrawals") // those so far waited for the first status of their pod
	}
	cpu, began := m.c.cpu(), time.Now()
	if err := campaign.Pause(ctx, m.idleOf(m.name)); err != nil {
		return err
	}
	took := time.Since(began)
	var renewed int
	renewed, m.longestLease = m.seen.leases()
	m.idleCPU, m.renewals = m.c.cpu()-cpu, float64(renewed)/took.Seconds()
	after, err := m.count(ctx, besidesLeases)
	if err != nil {
		return err
	}
	m.idleRequests = max(0, (after-requests)/took.Seconds()-m.baseline)
	m.rss = m.c.rss()
	fmt.Printf("%s: %.1f renewals per second, the longest gap %v\n", m.name, m.renewals, m.longestLease.Round(time.Millisecond))
	return nil
}

// flapPhase asks how long withdrawals waited. KWOK's stages do not flap.
func (m *measurement) flapPhase(context.Context) error {
	if m.flaps = "–"; m.name != "kwok" {
		m.flaps = m.c.ask("withdrawals")
	}
	return nil
}

// deleteAll deletes all pods and waits until they are gone.
func (m *measurement) deleteAll(ctx context.Context) error {
	before, err := m.countVerbs(ctx)
	if err != nil {
		return err
	}
	serverCPU, err := m.serverCPU(ctx)
	if err != nil {
		return err
	}
	cpu, began := m.c.cpu(), time.Now()
	if err := m.parallel(ctx, m.result.pods, func(ctx context.Context, i int) error {
		namespace := "steady"
		if m.isFlapping(i) {
			namespace = "flapping"
		}
		return m.client.CoreV1().Pods(namespace).Delete(ctx, fmt.Sprint("pod-", i), metav1.DeleteOptions{})
	}); err != nil {
		return err
	}
	asked := time.Since(began)
	if err := campaign.Await(ctx, 20*time.Millisecond, func() error {
		if _, n := m.seen.count(); n < m.result.pods {
			return fmt.Errorf("%d of %d pods are gone", n, m.result.pods)
		}
		return nil
	}); err != nil {
		return err
	}
	m.deleted, m.deleteCPU = time.Since(began), m.c.cpu()-cpu
	_, m.longestBusyLease = m.seen.leases()
	after, err := m.countVerbs(ctx)
	if err != nil {
		return err
	}
	used, err := m.serverCPU(ctx)
	if err != nil {
		return err
	}
	m.deleteServerCPU = used - serverCPU
	var requests []string
	for i, verb := range deletionVerbs {
		requests = append(requests, fmt.Sprintf("%.2f %s", (after[i]-before[i])/float64(m.result.pods), verb))
	}
	m.deleteRequests = strings.Join(requests, ", ")
	fmt.Printf("%s: %d pods deleted in %v; the last DELETE of the measurement was answered after %v\n",
		m.name, m.result.pods, m.deleted.Round(time.Millisecond), asked.Round(time.Millisecond))
	return nil
}
