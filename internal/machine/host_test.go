package machine

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/statusd/statusd/internal/machine/logs"
	"github.com/statusd/statusd/internal/nodecondition"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A kill for memory and a file system that went read-only: the first names its pod, the second becomes a
// condition of the Node.
func TestWhatTheKernelLogsIsPassedOn(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "kern.log")
	write := func(text string) {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	config := Default()
	config.NoKernelLog, config.Units = true, nil
	config.LogFiles = map[string]string{log: "kernel"}
	client := fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	found := make(chan logs.Problem, 10)
	registry := prometheus.NewRegistry()
	keeper := nodecondition.New(nodecondition.Options{Client: client, Node: "n1", Logger: slog.New(slog.DiscardHandler)})
	h, err := New(config, Options{Node: "n1", Conditions: keeper.Owner(nodecondition.Terms{}), StateDir: dir, Found: func(p logs.Problem) { found <- p }, Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { h.Run(ctx) })
	running.Go(func() { keeper.Run(ctx) })
	defer running.Wait()
	defer cancel()
	positions := filepath.Join(dir, "log-positions")
	for _, err := os.Stat(positions); err != nil; _, err = os.Stat(positions) { // it has begun at the end of the log
		time.Sleep(time.Millisecond)
	}
	write("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/kubepods,task_memcg=/kubepods/pod5bb44d6b-3c05-4d14-a27a-64ac2e8b1b0c/" +
		strings.Repeat("ab", 32) + ",task=java,pid=4242,uid=0\n" +
		"Memory cgroup out of memory: Killed process 4242 (java) total-vm:59948kB, anon-rss:24300kB, file-rss:1432kB\n" +
		"EXT4-fs (vda): Remounting filesystem read-only\n")
	p := <-found
	if p.Reason != "OOMKilling" || p.Victim == nil || p.Victim.UID != "5bb44d6b-3c05-4d14-a27a-64ac2e8b1b0c" || p.Victim.Process != "java" {
		t.Errorf("the first problem is %+v of %+v", p, p.Victim)
	}
	if p := <-found; p.Reason != "FilesystemIsReadOnly" {
		t.Errorf("the second problem is %+v", p)
	}
	for {
		node, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if c := node.Status.Conditions; len(c) == 1 && c[0].Type == "ReadonlyFilesystem" && c[0].Status == v1.ConditionTrue && c[0].Reason == "FilesystemIsReadOnly" {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if h.Load().Limit == "" || testutil.CollectAndCount(registry, "statusd_node_load") != 1 {
		t.Errorf("the load is %+v", h.Load())
	}
}

func TestMistakesInTheConfigAreNamed(t *testing.T) {
	c := Config{Units: map[string]string{"a": "kernel"}, LogFiles: map[string]string{"b": "nobody"}, LogRules: "/does/not/exist", Disks: []string{"c"}}
	wrong := map[string]int{}
	c.Validate(func(field, _ string, _ ...any) { wrong[field]++ })
	if len(wrong) != 4 || wrong["logFiles"] != 2 {
		t.Errorf("found %v", wrong)
	}
	c = Default()
	c.Validate(func(field, format string, args ...any) { t.Errorf("the default is wrong: "+field+": "+format, args...) })
}
