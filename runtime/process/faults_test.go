package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
	"github.com/statusd/statusd/runtime/process/internal/shim"
)

const (
	faultyPods  = 12
	faultyTurns = 80
)

// faulty is a node whose machine misbehaves.
type faulty struct {
	*host
	t      *testing.T
	disk   string
	random *rand.Rand
	full   func() // makes room again; nil if there is room
	frozen func() // takes writes again; nil if it does
	trace  []string
}

func (f *faulty) note(format string, args ...any) {
	f.trace = append(f.trace, fmt.Sprintf(format, args...))
}

func (f *faulty) fail(format string, args ...any) {
	f.t.Helper()
	f.t.Fatalf("%s\nafter %s", fmt.Sprintf(format, args...), strings.Join(f.trace[max(0, len(f.trace)-12):], ", "))
}

// any is one of the pods, or an empty UID.
func (f *faulty) any() types.UID {
	pods, err := f.Pods(context.Background())
	if err != nil {
		f.fail("pods: %v", err)
	}
	if len(pods) == 0 {
		return ""
	}
	return pods[f.random.IntN(len(pods))].Manifest.UID
}

// containerOf is the container of a pod, or nil.
func (f *faulty) containerOf(uid types.UID) *container {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pods[uid]
	if p == nil || len(p.containers) == 0 {
		return nil
	}
	return p.containers[0]
}

// refill starts pods until there are as many as there should be. What a disk that takes no
// writes refuses is refused.
func (f *faulty) refill() {
	f.note("refill")
	for i := range faultyPods {
		uid := types.UID(fmt.Sprint("pod-", i))
		if c := f.containerOf(uid); c != nil && f.stateOf(c) != runtime.Exited {
			continue
		}
		pod := scriptPod(uid, `trap 'exit 4' TERM; while :; do sleep 0.5; done`)
		err := f.RemovePod(context.Background(), uid)
		if err == nil {
			err = f.StartPod(context.Background(), pod)
		}
		if err == nil {
			_, err = f.StartContainer(context.Background(), pod, &pod.Spec.Containers[0], 0)
		}
		if err != nil && f.full == nil && f.frozen == nil {
			f.fail("start %s: %v", uid, err)
		}
	}
}

func (f *faulty) stop() {
	uid := f.any()
	f.note("stop %s", uid)
	if c := f.containerOf(uid); c != nil {
		if err := f.StopContainer(context.Background(), c.spec.ID, time.Duration(f.random.IntN(2))*time.Hour); err != nil {
			f.fail("stop: %v", err)
		}
		f.awaitAllExited(f.t, uid)
	}
}

func (f *faulty) killShim() {
	uid := f.any()
	f.note("kill the shim of %s", uid)
	var shim proc.ID
	if c := f.containerOf(uid); c != nil && record.Read(c.dir.Shim(), &shim) == nil {
		if err := shim.Signal(syscall.SIGKILL); err != nil {
			f.fail("kill: %v", err)
		}
		f.awaitAllExited(f.t, uid)
	}
}

func (f *faulty) fillOrFree() {
	switch {
	case f.frozen != nil:
	case f.full != nil:
		f.note("free")
		f.full()
		f.full = nil
	default:
		f.note("fill")
		f.full = fill(f.t, f.disk)
	}
}

func (f *faulty) freezeOrThaw() {
	if f.frozen != nil {
		f.note("thaw")
		f.frozen()
		f.frozen = nil
	} else {
		f.note("freeze")
		f.frozen = makeReadOnly(f.t, f.disk)
	}
}

func (f *faulty) restart() {
	f.note("restart")
	f.close()
	f.open(f.t)
}

// damage changes a byte of a record, or cuts it, while no statusd runs.
func (f *faulty) damage() {
	if f.full != nil || f.frozen != nil {
		return
	}
	f.close()
	var records []string
	err := filepath.WalkDir(filepath.Join(f.dir, "pods"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".json") {
			records = append(records, path)
		}
		return err
	})
	if err == nil && len(records) > 0 {
		path := records[f.random.IntN(len(records))]
		f.note("damage %s", strings.TrimPrefix(path, f.dir))
		data, readErr := os.ReadFile(path)
		if len(data) > 0 {
			data[f.random.IntN(len(data))] ^= byte(1 + f.random.IntN(255))
			data = data[:len(data)-f.random.IntN(2)*f.random.IntN(len(data))]
		}
		err = errors.Join(readErr, os.WriteFile(path, data, 0o600))
	}
	f.open(f.t)
	if err != nil {
		f.fail("damage: %v", err)
	}
}

// leave puts something strange into the state directory.
func (f *faulty) leave() {
	if f.full != nil || f.frozen != nil {
		return
	}
	f.note("leave a strange file")
	f.close()
	path := filepath.Join(f.dir, []string{"pods", "removing"}[f.random.IntN(2)], fmt.Sprint("strange-", f.random.Uint32()))
	err := os.WriteFile(path, []byte("?"), 0o600)
	f.open(f.t)
	if err != nil {
		f.fail("leave: %v", err)
	}
	_ = os.Remove(path)
}

// expectTruth checks what the runtime says against the processes of the machine. A shim may take its
// time to tell a statusd that was restarted what it could not record.
func (f *faulty) expectTruth() {
	for timeout := time.After(10 * time.Minute); ; {
		late := f.lie()
		if late == "" {
			return
		}
		select {
		case <-f.watch:
		case <-timeout:
			f.fail("%s", late)
		}
	}
}

// lie is what the runtime says that is not so, but may become so when it hears from a shim. That a
// container has exited must be true at once.
func (f *faulty) lie() string {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		f.fail("processes: %v", err)
	}
	running := map[string][]string{} // processes by the variable that says whose they are
	for _, path := range environments {
		data, _ := os.ReadFile(path) // it may have ended meanwhile
		for variable := range strings.SplitSeq(string(data), "\x00") {
			if strings.HasPrefix(variable, shim.MarkerVariable) {
				running[variable] = append(running[variable], path)
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for uid, p := range f.pods {
		for _, c := range p.containers {
			left := running[c.marker()]
			switch {
			case c.view.State == runtime.Exited && len(left) > 0:
				f.fail("%s: has exited, and %v run: %+v", uid, left, c.view)
			case c.view.State == runtime.Created:
				return fmt.Sprintf("%s: is Created", uid)
			case c.view.State == runtime.Running && len(left) == 0:
				return fmt.Sprintf("%s: is Running, and nothing runs: %+v", uid, c.view)
			}
		}
	}
	return ""
}

// Whatever the machine does, statusd starts, says the truth, and leaves nothing behind.
func TestTheTruthSurvivesFaults(t *testing.T) {
	if !mayMount(t) {
		return
	}
	h, disk := newHostOnSmallDisk(t)
	const seed = 7
	f := &faulty{host: h, t: t, disk: disk, random: rand.New(rand.NewPCG(seed, seed))}
	f.refill()
	faults := []func(){f.refill, f.stop, f.killShim, f.fillOrFree, f.freezeOrThaw, f.restart, f.damage, f.leave}
	for range faultyTurns {
		faults[f.random.IntN(len(faults))]()
		f.expectTruth()
	}
	for _, undo := range []func(){f.frozen, f.full} {
		if undo != nil {
			undo()
		}
	}
	h.leaveNothing(t)
	h.open(t)
	h.cleanOnce(t.Context())
	if got := files(t, h.dir); len(got) != 4 {
		f.fail("left %q, %+v", got, h.Problems())
	}
}
