package process

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/statusd/statusd/runtime/process/internal/record"
)

// The range of the pods' own groups, above the ranges that distributions, systemd and container
// engines use for users, groups and user namespaces, and below 2³¹.
const (
	firstPodGroup = 1_900_000_000
	lastPodGroup  = firstPodGroup + 1<<20 - 1
)

// podGroups are the groups of pods that exist. The zero value is ready to use.
type podGroups struct {
	used map[uint32]bool
	last uint32 // the last group taken: a number is reused as late as possible
}

func (g *podGroups) keep(group uint32) {
	if group == 0 {
		return
	}
	if g.used == nil {
		g.used = map[uint32]bool{}
	}
	g.used[group] = true
	g.last = max(g.last, group)
}

// take returns a group that no pod has. A machine runs out of processes long before it runs out
// of groups.
func (g *podGroups) take() uint32 {
	group := g.last
	for {
		group++
		if group < firstPodGroup || group > lastPodGroup {
			group = firstPodGroup
		}
		if !g.used[group] {
			break
		}
	}
	g.keep(group)
	g.last = group
	return group
}

// canBeAnyUser reports whether containers can run as any user and pods have groups of their own. The root user of a user namespace
// that has only some users and groups of the machine, as in a rootless container, cannot give a directory to another group.
func canBeAnyUser() bool {
	if os.Geteuid() != 0 {
		return false
	}
	groups, err := os.ReadFile("/proc/self/gid_map")
	return err != nil || mapsPodGroups(string(groups)) // an error: the kernel has no user namespaces
}

// mapsPodGroups reports whether a user namespace has the groups of pods. Each line is the first ID inside, the first
// ID outside and their number.
func mapsPodGroups(groups string) bool {
	for line := range strings.Lines(groups) {
		var inside, outside, count int64
		if n, _ := fmt.Sscan(line, &inside, &outside, &count); n == 3 && inside <= firstPodGroup && lastPodGroup < inside+count {
			return true
		}
	}
	return false
}

// takeGroup returns a group for a new pod: 0 if all pods run as statusd's user.
func (r *Runtime) takeGroup() uint32 {
	if !r.root {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.podGroups.take()
}

// giveGroup takes back the group of a pod that is gone.
func (r *Runtime) giveGroup(p *pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.podGroups.used, p.group)
}

// makeClosed makes the directory of a pod, closed to all users but those of its containers, which
// have its group. Everything below may be as open as the containers of the pod need it.
func (p *pod) makeClosed() error {
	if err := makeDir(string(p.dir), private); err != nil || p.group == 0 {
		return err
	}
	if err := os.Chown(string(p.dir), -1, int(p.group)); err != nil {
		return err
	}
	return os.Chmod(string(p.dir), 0o710)
}

var errPodGroup = errors.New("statusd gives this group to a pod of its own choice")

// checkGroups refuses a container that asks for the group of a pod, or for a user whose own group
// that would be.
func checkGroups(user *record.User) error {
	for _, group := range append([]uint32{user.UID, user.GID}, user.Groups...) {
		if firstPodGroup <= group && group <= lastPodGroup {
			return fmt.Errorf("group %d: %w", group, errPodGroup)
		}
	}
	return nil
}
