package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/test/stock"
)

// leftovers checks for remains of deleted pods.
func (s *storm) leftovers(ctx context.Context) error {
	var left []error
	sandboxes, err := s.cri.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return err
	}
	containers, err := s.cri.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return err
	}
	if len(sandboxes.Items)+len(containers.Containers) > 0 {
		left = append(left, fmt.Errorf("%d sandboxes and %d containers", len(sandboxes.Items), len(containers.Containers)))
	}
	processes, err := s.processes()
	if err != nil {
		return err
	}
	for _, p := range processes {
		if p.isShim() || strings.Contains(p.group, s.node.Group()+"/kubepods/") {
			left = append(left, fmt.Errorf("process %d: %s", p.pid, p.command))
		}
	}
	mounts, err := os.ReadFile(filepath.Join(filepath.Dir(s.node.Root()), "mounts"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, s.node.Dir()) && (strings.Contains(line, "/pods/") || strings.Contains(line, "/rootfs ")) {
			left = append(left, fmt.Errorf("mount %s", strings.TrimSpace(line)))
		}
	}
	left = append(left, s.directories()...)
	return errors.Join(left...)
}

// directories are records, logs and control groups.
func (s *storm) directories() (left []error) {
	below := []string{filepath.Join(s.stateIn, "runtime", "cri", "pods"), "/var/log/pods", "/var/log/containers"}
	for _, dir := range below {
		entries, err := os.ReadDir(filepath.Join(s.node.Root(), dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			left = append(left, err)
		}
		if len(entries) > 0 {
			left = append(left, fmt.Errorf("%d entries in %s, as %s", len(entries), dir, entries[0].Name()))
		}
	}
	groups, err := stock.Groups(s.node.Group())
	if err != nil {
		return append(left, err)
	}
	for _, group := range groups {
		_ = filepath.WalkDir(group, func(path string, entry fs.DirEntry, _ error) error {
			if entry != nil && entry.IsDir() && strings.HasPrefix(entry.Name(), "pod") {
				left = append(left, fmt.Errorf("control group %s", path))
			}
			return nil
		})
	}
	return left
}
