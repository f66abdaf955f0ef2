package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/stock"
)

// fault is something that breaks. do returns when its cause is over.
type fault struct {
	name string
	do   func(s *storm, ctx context.Context) error
}

func faults() []fault {
	return []fault{
		{"containerd killed", (*storm).containerdKilled},
		{"containerd frozen", (*storm).containerdFrozen},
		{"containerd without its state", (*storm).stateLost},
		{"shim killed", (*storm).shimKilled},
		{"container killed", (*storm).containerKilled},
		{"statusd killed", (*storm).statusdKilled},
		{"statusd stopped", (*storm).statusdStopped},
		{"statusd frozen", (*storm).statusdFrozen},
		{"both killed", (*storm).bothKilled},
		{"image store emptied", (*storm).imagesGone},
		{"disk full", (*storm).diskFull},
	}
}

// some is a time of up to so many seconds.
func (s *storm) some(ctx context.Context, seconds int) error {
	return campaign.Pause(ctx, time.Duration(s.random.IntN(seconds*1000))*time.Millisecond)
}

func (s *storm) containerdKilled(ctx context.Context) error {
	s.node.Containerd.Process().Kill()
	if err := s.some(ctx, 5); err != nil {
		return err
	}
	return s.node.Containerd.Start(ctx)
}

func (s *storm) containerdFrozen(ctx context.Context) error {
	containerd := s.node.Containerd.Process()
	if err := containerd.Pause(ctx); err != nil {
		return err
	}
	defer containerd.Resume()
	return s.some(ctx, 15)
}

// stateLost ends everything of containerd and starts it with an empty directory, as after the loss of a disk.
func (s *storm) stateLost(ctx context.Context) error {
	s.node.Containerd.Process().Kill()
	dir := s.node.Dir()
	archives, err := filepath.Glob(filepath.Join(dir, "*.tar"))
	if err != nil {
		return err
	}
	for _, archive := range archives { // they are imported again
		err = errors.Join(err, os.Remove(archive))
	}
	// containerd leaves mounts below both directories: those of containers, and those of a start that was under way.
	unmount := fmt.Sprintf(`grep -Eo ' %[1]s/(run/)?containerd/[^ ]*' /proc/mounts | sort -r | xargs -r umount -l; rm -rf %[1]s/containerd %[1]s/run/containerd`, dir)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("the state of containerd is still there"))
	defer cancel()
	err = stock.Await(bounded, func() error { // what a shim had begun may mount and write meanwhile
		if err := s.killAll(func(p process) bool { return p.isShim() || p.isOfPod(s.node.Group()) }); err != nil {
			return err
		}
		return s.onNode(unmount)
	})
	if err != nil {
		return err
	}
	return s.node.Containerd.Start(ctx)
}

func (s *storm) shimKilled(context.Context) error {
	return s.killOne(process.isShim)
}

func (s *storm) containerKilled(context.Context) error {
	return s.killOne(func(p process) bool { return p.isContainer(s.node.Group()) })
}

func (s *storm) statusdKilled(ctx context.Context) error {
	s.node.Kubelet.Process().Kill()
	if err := errors.Join(s.containerKilled(ctx), s.some(ctx, 5)); err != nil {
		return err
	}
	return s.node.StartStatusd()
}

func (s *storm) statusdStopped(ctx context.Context) error {
	s.node.Kubelet.Process().Signal(syscall.SIGTERM)
	select {
	case <-s.node.Kubelet.Process().Exited():
	case <-time.After(time.Minute):
		return errors.New("statusd does not end after SIGTERM")
	}
	return s.node.StartStatusd()
}

func (s *storm) statusdFrozen(ctx context.Context) error {
	statusd := s.node.Kubelet.Process()
	if err := statusd.Pause(ctx); err != nil {
		return err
	}
	defer statusd.Resume()
	return errors.Join(s.containerKilled(ctx), s.some(ctx, 10))
}

func (s *storm) bothKilled(ctx context.Context) error {
	s.node.Kubelet.Process().Kill()
	s.node.Containerd.Process().Kill()
	if err := errors.Join(s.containerKilled(ctx), s.some(ctx, 5)); err != nil {
		return err
	}
	if s.random.IntN(2) == 0 {
		return errors.Join(s.node.Containerd.Start(ctx), s.node.StartStatusd())
	}
	return errors.Join(s.node.StartStatusd(), s.node.Containerd.Start(ctx))
}

// imagesGone removes the image of the pods while one of them starts again.
func (s *storm) imagesGone(ctx context.Context) error {
	archives, err := filepath.Glob(filepath.Join(s.node.Dir(), "*host*.tar"))
	if err != nil || len(archives) != 1 {
		return fmt.Errorf("archives of the image: %v, %w", archives, err)
	}
	if err := s.node.Containerd.RemoveImage(ctx, stock.Image); err != nil {
		return err
	}
	if err := errors.Join(s.containerKilled(ctx), s.some(ctx, 5)); err != nil {
		return err
	}
	return s.node.Containerd.LoadImage(ctx, archives[0])
}

// diskFull fills the file system of statusd's state while containers end.
func (s *storm) diskFull(ctx context.Context) error {
	fill := filepath.Join(s.stateIn, "fill")
	if err := s.onNode("dd if=/dev/zero of=" + fill + " bs=64k 2>/dev/null; sync; true"); err != nil {
		return err
	}
	err := errors.Join(s.containerKilled(ctx), s.containerKilled(ctx), s.some(ctx, 10))
	return errors.Join(err, s.onNode("rm "+fill))
}

// process is one of the node.
type process struct {
	pid     int // on the node
	command string
	group   string // what /proc/PID/cgroup says
}

func (p process) isShim() bool { return strings.Contains(p.command, "containerd-shim") }

// isOfPod reports whether the process is of a container or of a sandbox.
func (p process) isOfPod(group string) bool {
	return strings.Contains(p.group, group+"/kubepods/") && !p.isShim()
}

// isContainer reports whether the process is the first one of a container and not of a sandbox.
func (p process) isContainer(group string) bool {
	return p.isOfPod(group) && strings.HasPrefix(p.command, "/bin/sh -c") && !strings.Contains(p.command, stock.Forever)
}

func (s *storm) processes() (all []process, err error) {
	root := filepath.Join(s.node.Root(), "proc")
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == 1 {
			continue
		}
		command, err := os.ReadFile(filepath.Join(root, entry.Name(), "cmdline"))
		group, groupErr := os.ReadFile(filepath.Join(root, entry.Name(), "cgroup"))
		if err != nil || groupErr != nil { // it has ended
			continue
		}
		all = append(all, process{pid, string(bytes.ReplaceAll(command, []byte{0}, []byte{' '})), string(group)})
	}
	return all, nil
}

// killOne kills a process, by seed, if there is one.
func (s *storm) killOne(which func(process) bool) error {
	all, err := s.processes()
	if err != nil {
		return err
	}
	var found []process
	for _, p := range all {
		if which(p) {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return s.onNode(fmt.Sprintf("kill -9 %d; true", found[s.random.IntN(len(found))].pid))
}

func (s *storm) killAll(which func(process) bool) error {
	for {
		all, err := s.processes()
		if err != nil {
			return err
		}
		command := ""
		for _, p := range all {
			if which(p) {
				command += " " + strconv.Itoa(p.pid)
			}
		}
		if command == "" {
			return nil
		}
		if err := s.onNode("kill -9" + command + "; true"); err != nil {
			return err
		}
	}
}

// onNode runs a command on the node and waits for it.
func (s *storm) onNode(command string) error {
	p, err := s.node.Start("command", "/bin/sh", "-c", command)
	if err != nil {
		return err
	}
	if status, _ := p.Ended(); status.ExitStatus() != 0 {
		return fmt.Errorf("%s: exit code %d, see %s", command, status.ExitStatus(), p.Log())
	}
	return nil
}
