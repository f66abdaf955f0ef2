package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/clockstep"
)

// faultKind is a fault with its steps: start, check, end if it has one, and check again.
type faultKind struct {
	name   string
	happen func(*faultRun, context.Context) error
}

var faultKinds = []faultKind{
	{"disk full", func(r *faultRun, ctx context.Context) error {
		return r.whileBroken(ctx, r.machine.fill, r.machine.free)
	}},
	{"read-only", func(r *faultRun, ctx context.Context) error {
		return r.whileBroken(ctx, r.machine.freeze, r.machine.thaw)
	}},
	{"kill -9", func(r *faultRun, ctx context.Context) error {
		r.kill()
		if err := r.pods.killOne(r.machine); err != nil { // while nothing watches it
			return err
		}
		if err := r.restart(ctx); err != nil {
			return err
		}
		return r.verify(ctx, "after the restart")
	}},
	{"reboot", func(r *faultRun, ctx context.Context) error {
		if err := r.reboot(ctx); err != nil {
			return err
		}
		return r.verify(ctx, "after the boot")
	}},
	{"clock stepped", (*faultRun).stepClock},
	{"address changed", func(r *faultRun, ctx context.Context) error {
		if err := r.machine.newAddress(); err != nil {
			return err
		}
		return r.verify(ctx, "with another address")
	}},
	{"record damaged", (*faultRun).damageRecord},
	{"server killed", (*faultRun).serverKilled},
	{"server frozen", (*faultRun).serverFrozen},
}

// serverDown is how long the API server does not answer, at most.
const serverDown = 8 * time.Second

// serverKilled ends the API server and the controllers, has a container end meanwhile, and starts them again.
func (r *faultRun) serverKilled(ctx context.Context) error {
	if err := r.server.Kill(); err != nil {
		return err
	}
	err := errors.Join(r.pods.killOne(r.machine), campaign.Pause(ctx, time.Duration(r.random.Int64N(int64(serverDown)))))
	restart, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := errors.Join(err, r.server.Restart(restart)); err != nil {
		return err
	}
	return r.verify(ctx, "after the start of the server")
}

// serverFrozen stops the API server and the controllers for a while.
func (r *faultRun) serverFrozen(ctx context.Context) error {
	r.server.Freeze()
	err := errors.Join(r.pods.killOne(r.machine), campaign.Pause(ctx, time.Duration(r.random.Int64N(int64(serverDown)))))
	r.server.Thaw()
	if err != nil {
		return err
	}
	return r.verify(ctx, "after the server was frozen")
}

// whileBroken breaks the disk, has a container end meanwhile, every other time statusd too, and repairs it.
func (r *faultRun) whileBroken(ctx context.Context, breakIt, repair func() error) error {
	if err := breakIt(); err != nil {
		return err
	}
	restart := r.random.IntN(2) == 0
	when := "meanwhile"
	if restart {
		r.kill()
		when = "meanwhile, restarted"
	}
	if err := r.pods.killOne(r.machine); err != nil {
		return err
	}
	if restart {
		if err := r.restart(ctx); err != nil {
			return err
		}
	}
	if err := r.verify(ctx, when); err != nil {
		return err
	}
	if err := repair(); err != nil {
		return err
	}
	return r.verify(ctx, "afterwards")
}

const day = 24 * time.Hour

// stepClock makes statusd's clock a day wrong, or right again, while it runs. Every other time it also restarts.
func (r *faultRun) stepClock(ctx context.Context) error {
	clocks := []time.Duration{-day, 0, day}
	before := r.clock
	for r.clock == before {
		r.clock = clocks[r.random.IntN(len(clocks))]
	}
	if err := clockstep.Set(r.daemon.PID(), r.clock); err != nil {
		return err
	}
	when := fmt.Sprintf("clock off by %s", r.clock)
	if r.random.IntN(2) == 0 {
		r.kill()
		if err := r.pods.killOne(r.machine); err != nil {
			return err
		}
		if err := r.restart(ctx); err != nil {
			return err
		}
		when += ", restarted"
	} else if err := r.pods.killOne(r.machine); err != nil {
		return err
	}
	return r.verify(ctx, when)
}

// damageRecord changes a file of the state while statusd runs, and restarts it: it reads them when it starts.
func (r *faultRun) damageRecord(ctx context.Context) error {
	pods := filepath.Join(r.machine.state, "runtime", "pods")
	if r.random.IntN(4) == 0 {
		stray := filepath.Join(pods, fmt.Sprintf("stray-%d", r.random.Uint32()))
		if err := os.WriteFile(stray, []byte("not of a pod"), 0o600); err != nil {
			return err
		}
		return r.restartAndVerify(ctx, "a file among the pods", func() error { return os.Remove(stray) })
	}
	records, err := filepath.Glob(filepath.Join(pods, "*", "*.json"))
	if err != nil {
		return err
	}
	more, err := filepath.Glob(filepath.Join(pods, "*", "containers", "*", "*.json"))
	if err != nil {
		return err
	}
	records = append(append(records, more...), filepath.Join(r.machine.state, "journal.db"))
	file := records[r.random.IntN(len(records))]
	if err := r.noteDamage(ctx, pods, file); err != nil {
		return err
	}
	// statusd must not write the record again after it was damaged.
	r.daemon.Signal(syscall.SIGSTOP)
	what, err := damage(file, r.random.IntN(2) == 0, r.random.Uint64())
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(file, r.machine.state)
	return r.restartAndVerify(ctx, what+" in "+name, func() error { return nil })
}

func (r *faultRun) restartAndVerify(ctx context.Context, when string, undo func() error) error {
	r.kill()
	if err := r.restart(ctx); err != nil {
		return err
	}
	if err := r.verify(ctx, when); err != nil {
		return err
	}
	return undo()
}

// noteDamage records the pod of a damaged file.
func (r *faultRun) noteDamage(ctx context.Context, pods, file string) error {
	list, err := r.admin.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, pod := range list.Items {
		uid := string(pod.UID)
		if hash := pod.Annotations[v1.MirrorPodAnnotationKey]; hash != "" {
			uid = hash
		}
		if strings.HasPrefix(file, filepath.Join(pods, uid)+"/") {
			r.pods.damaged[pod.Name] = true
		}
	}
	return nil
}

// damage truncates a file or flips a bit of it, at a place chosen by number.
func damage(file string, cut bool, number uint64) (string, error) {
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) || (err == nil && len(data) == 0) {
		return "nothing damaged", nil // the pod has gone meanwhile
	}
	if err != nil {
		return "", err
	}
	at := int(number % uint64(len(data)))
	if cut {
		return fmt.Sprintf("cut at %d", at), os.Truncate(file, int64(at))
	}
	bit := byte(1) << (number >> 61)
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, err = f.WriteAt([]byte{data[at] ^ bit}, int64(at))
	return fmt.Sprintf("bit flipped at %d", at), err
}
