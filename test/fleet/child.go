package main

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	serializers "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/statusd/statusd/internal/simulate"
	"github.com/statusd/statusd/node/fleet"
)

// answer answers the parent's commands, one per line: heap is the heap after a collection, and the commands in more.
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
	before := map[float64]uint64{}
	go answer(map[string]func() string{"withdrawals": func() string { return withdrawals(registry, before) }})
	return s.Run(ctx)
}

// withdrawals returns how many withdrawals there were since the last call, and in which time 99 % of them had their turn, as an upper
// bound of the histogram.
func withdrawals(registry *prometheus.Registry, before map[float64]uint64) string {
	families, err := registry.Gather()
	if err != nil {
		return err.Error()
	}
	for _, f := range families {
		if f.GetName() != "statusd_pod_status_queue_duration_seconds" {
			continue
		}
		for _, m := range f.Metric {
			if m.Label[0].GetValue() == "withdrawal" {
				return since(m.Histogram, before)
			}
		}
	}
	return "0"
}

func since(h *dto.Histogram, before map[float64]uint64) string {
	total := h.GetSampleCount() - before[math.Inf(1)]
	before[math.Inf(1)] = h.GetSampleCount()
	bound := math.Inf(1)
	for _, b := range h.Bucket {
		n := b.GetCumulativeCount() - before[b.GetUpperBound()]
		before[b.GetUpperBound()] = b.GetCumulativeCount()
		if float64(n) >= 0.99*float64(total) {
			bound = min(bound, b.GetUpperBound())
		}
	}
	return fmt.Sprintf("%d; at most %g ms", total, 1000*bound)
}

// runInformer has nothing but the pods: informer KUBECONFIG.
func runInformer(ctx context.Context, args []string) error {
	config, err := clientcmd.BuildConfigFromFlags("", args[1])
	if err != nil {
		return err
	}
	config.ContentType = serializers.ContentTypeProtobuf // as statusd's
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
	pods := factory.Core().V1().Pods().Informer()
	factory.Start(ctx.Done())
	go answer(map[string]func() string{"pods": func() string { return strconv.Itoa(len(pods.GetStore().List())) }})
	<-ctx.Done()
	return nil
}
