package guard_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/statusd/statusd/guard"
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
