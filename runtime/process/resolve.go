package process

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// defaultPath is the PATH of a container that does not set its own.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// resolve turns a container's spec into what a shim runs. ID, attempt and time are left
// to the caller.
func (r *Runtime) resolve(ctx context.Context, p *pod, dir containerDir, manifest *v1.Pod, target *v1.Container) (record.Spec, error) {
	user, err := resolveUser(manifest.Spec.SecurityContext, target.SecurityContext)
	if err != nil {
		pod := fmt.Sprintf("%s_%s(%s)", manifest.Name, manifest.Namespace, manifest.UID)
		return record.Spec{}, fmt.Errorf("%w (pod: %q, container: %s)", err, pod, target.Name)
	}
	if user != nil && p.group != 0 {
		if err := checkGroups(user); err != nil {
			return record.Spec{}, err
		}
		user.Groups = append(user.Groups, p.group)
	}
	env, err := r.environment(ctx, p, dir, manifest, target, user)
	if err != nil {
		return record.Spec{}, err
	}
	view, err := r.view(p, dir, manifest, target, env)
	if err != nil {
		return record.Spec{}, err
	}
	spec := record.Spec{
		Name:            target.Name,
		Env:             env.Strings(),
		Dir:             cmp.Or(target.WorkingDir, "/"),
		User:            user,
		View:            view,
		Confinement:     confinement(manifest.Spec.SecurityContext, target.SecurityContext, user, view),
		Stdin:           target.Stdin,
		StdinOnce:       target.StdinOnce,
		TTY:             target.TTY,
		StopSignal:      int(stopSignal(target)),
		LogMaxBytes:     r.options.LogMaxBytes,
		LogMaxFiles:     r.options.LogMaxFiles,
		MessageFromLogs: target.TerminationMessagePolicy == v1.TerminationMessageFallbackToLogsOnError,
	}
	for _, word := range slices.Concat(target.Command, target.Args) {
		spec.Command = append(spec.Command, runtime.Expand(word, env.Lookup))
	}
	if len(spec.Command) == 0 {
		return record.Spec{}, fmt.Errorf("no command specified")
	}
	if !filepath.IsAbs(spec.Dir) {
		return record.Spec{}, fmt.Errorf("workingDir %q is not an absolute path", spec.Dir)
	}
	return spec, nil
}

// stopSignal is SIGTERM unless the container asks for another one.
func stopSignal(target *v1.Container) syscall.Signal {
	if target.Lifecycle == nil || target.Lifecycle.StopSignal == nil {
		return syscall.SIGTERM
	}
	return cmp.Or(signalNumber(*target.Lifecycle.StopSignal), syscall.SIGTERM)
}

// signalNumber is 0 for a signal that this machine does not have. The API also knows
// the names of real-time signals, counted from both ends.
func signalNumber(name v1.Signal) syscall.Signal {
	if number, ok := realTimeSignal(string(name)); ok {
		return number
	}
	return unix.SignalNum(string(name))
}

// Real-time signals that the C library leaves to programs.
const firstRealTime, lastRealTime = 34, 64

func realTimeSignal(name string) (syscall.Signal, bool) {
	if offset, ok := strings.CutPrefix(name, "SIGRTMIN"); ok {
		return countSignal(firstRealTime, offset)
	}
	if offset, ok := strings.CutPrefix(name, "SIGRTMAX"); ok {
		return countSignal(lastRealTime, offset)
	}
	return 0, false
}

func countSignal(from int, offset string) (syscall.Signal, bool) {
	if offset == "" {
		return syscall.Signal(from), true
	}
	n, err := strconv.Atoi(offset) // "+3", "-2"
	return syscall.Signal(from + n), err == nil && firstRealTime <= from+n && from+n <= lastRealTime
}
