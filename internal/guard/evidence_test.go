package guard_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/wholefile"
)

// Evidence is kept before the restart, and a disk that takes none holds no restart back.
func TestEvidenceIsKeptBeforeARestart(t *testing.T) {
	for _, failure := range []error{nil, errors.New("no space left on device")} {
		var kept []guard.Case
		run(t, func(k *kubelet, o *guard.Options) {
			o.Keep = func(_ context.Context, c guard.Case) (string, error) {
				if k.count() != 0 {
					t.Error("the restart came first")
				}
				kept = append(kept, c)
				return "/evidence/1", failure
			}
		}, func(t *testing.T, k *kubelet, g *guard.Guard, told *notices) {
			time.Sleep(time.Minute)
			k.kill(7)
			time.Sleep(10 * time.Second)
			r := g.Report().Restarts
			if len(kept) != 1 || k.count() != 1 || r[0].Evidence != "/evidence/1" || (r[0].EvidenceErr == "") != (failure == nil) {
				t.Fatalf("kept %d times, %d restarts, %+v", len(kept), k.count(), r)
			}
			if c := kept[0]; c.Reason != guard.ProcessGone || c.Report.Health != guard.Unhealthy || *c.Evidence.Process.Value.ExitCode != 7 {
				t.Errorf("kept %+v", c)
			}
		})
	}
}

// Evidence that takes all the time there is for it is named all the same.
func TestEvidenceThatIsCutShortIsNamed(t *testing.T) {
	run(t, func(k *kubelet, o *guard.Options) {
		o.Keep = func(ctx context.Context, c guard.Case) (string, error) {
			<-ctx.Done()
			time.Sleep(100 * time.Millisecond) // for the disk
			return "/evidence/1", ctx.Err()
		}
	}, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
		time.Sleep(time.Minute)
		k.kill(7)
		time.Sleep(15 * time.Second)
		r := g.Report().Restarts
		if len(r) != 1 || r[0].Evidence != "/evidence/1" || r[0].EvidenceErr == "" {
			t.Errorf("got %+v", r)
		}
	})
}

// A report names the evidence that there is: of a store that keeps one case, that of the last restart.
func TestEvidenceThatWasRemovedIsNotNamed(t *testing.T) {
	dir := t.TempDir()
	run(t, func(k *kubelet, o *guard.Options) {
		o.Keep = func(context.Context, guard.Case) (string, error) {
			n := k.count()
			kept := filepath.Join(dir, strconv.Itoa(n))
			return kept, errors.Join(os.Mkdir(kept, 0o700), os.RemoveAll(filepath.Join(dir, strconv.Itoa(n-1))))
		}
	}, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
		for range 2 {
			time.Sleep(5 * time.Minute)
			k.kill(1)
		}
		time.Sleep(5 * time.Minute)
		r := g.Report().Restarts
		if len(r) != 2 || r[0].Evidence != "" || r[0].EvidenceErr == "" || r[1].Evidence != filepath.Join(dir, "1") || r[1].EvidenceErr != "" {
			t.Errorf("got %+v", r)
		}
	})
}

// A disk that hangs holds neither looks nor restarts nor the end of the guard. When it answers again, the file gets what is known then.
func TestADiskThatHangsHoldsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "guard.json")
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet()
		works, worksAtLast := make(chan struct{}), make(chan struct{})
		var ending atomic.Bool
		policy := guard.DefaultPolicy()
		policy.Restart = true
		g, err := guard.New(guard.Options{
			Kubelet: k, Collect: k.collect, Policy: policy, StateFile: file,
			Keep: func(context.Context, guard.Case) (string, error) {
				<-works
				return "", nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		g.SetWrite(func(path string, content []byte) error {
			<-works
			if ending.Load() {
				<-worksAtLast
			}
			return wholefile.Write(path, content)
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = g.Run(ctx)
		}()
		time.Sleep(time.Minute)
		k.kill(7)
		time.Sleep(4 * time.Second)
		if r := g.Report(); r.Health != guard.Unhealthy {
			t.Errorf("%s after 4 s", r.Health)
		}
		time.Sleep(11 * time.Second)
		if r := g.Report(); k.count() != 1 || len(r.Restarts) != 1 || r.Restarts[0].EvidenceErr != "no answer in time" {
			t.Errorf("%d restarts, %+v", k.count(), r.Restarts)
		}
		time.Sleep(2 * time.Minute)
		if r := g.Report(); r.Health != guard.Healthy || time.Since(r.At) > 10*time.Second {
			t.Errorf("%s, looked at %s ago", r.Health, time.Since(r.At))
		}
		if err := g.Maintenance(time.Now().Add(time.Hour)); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("a maintenance that is not on disk: got %v, want an error that names the file", err)
		}
		close(works)
		time.Sleep(10 * time.Second)
		if content, err := os.ReadFile(file); err != nil || !strings.Contains(string(content), "maintenance") {
			t.Errorf("the file has %s, %v", content, err)
		}
		ending.Store(true)
		cancel()
		time.Sleep(10 * time.Second)
		select {
		case <-ended:
		default:
			t.Error("the guard does not end")
		}
		close(worksAtLast)
	})
}
