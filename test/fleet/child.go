package main

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/statusd/statusd/internal/simulate"
	"github.com/statusd/statusd/node/fleet"
)

// answer answers the commands that the parent writes, a line each: heap is the heap after a collection, and what is in more.
func answer(more map[string]func() string) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "heap" {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			fmt.Println(m.HeapAlloc + m.StackInuse)
		} else if f := more[lines.Text()]; f != nil {
			fmt.Println(f())
		}
	}
	os.Exit(0) // the parent is gone
}

// runNodes is statusd's side: nodes KUBECONFIG NUMBER.
func runNodes(ctx context.Context, args []string) error {
	config, err := clientcmd.BuildConfigFromFlags("", args[1])
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	client, leases, err := fleet.Clients(config)
	if err != nil {
		return err
	}
	script, err := simulate.Parse([]byte("pods:\n- {match: {namespace: flapping}, flapEvery: 10s, flapFor: 2s}\n"))
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	s, err := simulate.New(simulate.Options{
		Client: client, Leases: leases, Nodes: number, Prefix: prefix, Script: script, Seed: 1, Registerer: registry,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	go answer(map[string]func() string{"withdrawals": func() string { return withdrawals(registry) }})
	return s.Run(ctx)
}

// withdrawals is in which time 99 % of the withdrawals had their turn, as an upper bound of the histogram, and how many there were.
func withdrawals(registry *prometheus.Registry) string {
	families, err := registry.Gather()
	if err != nil {
		return err.Error()
	}
	for _, f := range families {
		if f.GetName() != "statusd_pod_status_queue_duration_seconds" {
			continue
		}
		for _, m := range f.Metric {
			if m.Label[0].GetValue() != "withdrawal" {
				continue
			}
			h := m.Histogram
			for _, b := range h.Bucket {
				if float64(b.GetCumulativeCount()) >= 0.99*float64(h.GetSampleCount()) {
					return fmt.Sprintf("%d; at most %g ms", h.GetSampleCount(), 1000*b.GetUpperBound())
				}
			}
			return fmt.Sprintf("%d; more than 30 s", h.GetSampleCount())
		}
	}
	return "0"
}

// runInformer has nothing but the pods: informer KUBECONFIG.
func runInformer(ctx context.Context, args []string) error {
	config, err := clientcmd.BuildConfigFromFlags("", args[1])
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
	pods := factory.Core().V1().Pods().Informer()
	factory.Start(ctx.Done())
	go answer(map[string]func() string{"pods": func() string { return strconv.Itoa(len(pods.GetStore().List())) }})
	<-ctx.Done()
	return nil
}
