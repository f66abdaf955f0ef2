package criside

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
)

// state is what a runtime has, by ID.
type state struct {
	sandboxes  map[string]audit.Sandbox
	containers map[string]audit.Container
}

func newState() state {
	return state{map[string]audit.Sandbox{}, map[string]audit.Container{}}
}

// since returns the changed pods, and keeps when an unchanged pod was first seen.
func (s state) since(before state) map[types.UID]bool {
	changed := map[types.UID]bool{}
	differences(before.sandboxes, s.sandboxes, sameSandbox, func(s audit.Sandbox) { changed[s.UID] = true })
	differences(before.containers, s.containers, sameContainer, func(c audit.Container) { changed[c.UID] = true })
	return changed
}

// differences calls changed for added, removed and changed entries. For unchanged entries, now gets the copy of
// before.
func differences[T any](before, now map[string]T, same func(T, T) bool, changed func(T)) {
	for id, is := range now {
		if was, ok := before[id]; ok && same(was, is) {
			now[id] = was
		} else {
			changed(is)
		}
	}
	for id, was := range before {
		if _, ok := now[id]; !ok {
			changed(was)
		}
	}
}

func sameSandbox(a, b audit.Sandbox) bool {
	return a.UID == b.UID && a.Namespace == b.Namespace && a.Name == b.Name && a.Attempt == b.Attempt &&
		a.Ready == b.Ready && a.Created.Equal(b.Created) && slices.Equal(a.IPs, b.IPs)
}

func sameContainer(a, b audit.Container) bool {
	a.At = b.At
	return a == b
}
