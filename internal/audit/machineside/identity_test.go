package machineside

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/statusd/statusd/internal/audit"
)

func write(t *testing.T, root string, files map[string]string) *host {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &host{root: root, left: 1000}
}

// What the machine calls itself is read where a kubelet reads it; what is not mounted is not known.
func TestIdentity(t *testing.T) {
	root := t.TempDir()
	h := write(t, root, map[string]string{"etc/machine-id": "m\n", "proc/sys/kernel/random/boot_id": "b\n"})
	if got, want := identity(h, filepath.Join(root, "proc")), (audit.Identity{MachineID: "m", BootID: "b"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The addresses are those of the kubelet's network; the loopback, links and broadcasts are none of them.
func TestAddresses(t *testing.T) {
	root := t.TempDir()
	h := write(t, root, map[string]string{
		"proc/7/net/fib_trie": `Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     |-- 192.0.2.0
        /24 link UNICAST
Local:
     |-- 127.0.0.1
        /32 host LOCAL
     |-- 192.0.2.7
        /32 host LOCAL
     |-- 192.0.2.255
        /32 link BROADCAST
`,
		"proc/7/net/if_inet6": `00000000000000000000000000000001 01 80 10 80       lo
fe800000000000000000000000000001 02 40 20 80     eth0
fd000010000000000000000000000001 02 40 00 80     eth0
odd
`,
	})
	if got, want := addresses(h, filepath.Join(root, "proc"), 7), []string{"192.0.2.7", "fd00:10::1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, pid := range []int{0, 8} {
		if got := addresses(h, filepath.Join(root, "proc"), pid); got != nil {
			t.Errorf("process %d: got %q, want none", pid, got)
		}
	}
}

// A container that is paused is a frozen group below that of its pod, with either version of control groups.
func TestFrozenGroups(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"none":      {map[string]string{"pod/cgroup.freeze": "0\n", "pod/c/cgroup.freeze": "0\n"}, false},
		"version 2": {map[string]string{"pod/cgroup.freeze": "0\n", "pod/c/cgroup.freeze": "1\n"}, true},
		"version 1": {map[string]string{"pod/c/freezer.state": "FROZEN\n"}, true},
	} {
		if got := frozen(write(t, t.TempDir(), c.files), "/pod", maxBelow); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// With version 1 the state of a group is in the freezer's tree, beside the one that has the processes.
func TestFrozenGroups_OfVersion1(t *testing.T) {
	f := newTree(t)
	if err := os.Remove(filepath.Join(f.root, "sys/fs/cgroup/cgroup.controllers")); err != nil {
		t.Fatal(err)
	}
	for _, uid := range []string{apiUID, staticUID} {
		f.write("/sys/fs/cgroup/pids/kubepods/pod"+uid+"/c/cgroup.procs", "10\n")
	}
	f.write("/sys/fs/cgroup/freezer/kubepods/pod"+apiUID+"/c/freezer.state", "FROZEN\n")
	f.write("/sys/fs/cgroup/freezer/kubepods/pod"+staticUID+"/c/freezer.state", "THAWED\n")
	groups := f.must().Cgroups
	if !groups[apiUID].Frozen || groups[staticUID].Frozen {
		t.Errorf("got %+v", groups)
	}
}

// A group is stopped when a signal has stopped each of its processes; one that has ended and one that is gone do not count, and one of another
// PID namespace is not known.
func TestStoppedGroups(t *testing.T) {
	for _, c := range []struct {
		pids string
		want bool
	}{{"", false}, {"10\n", true}, {"10\n11\n", true}, {"10\n12\n", false}, {"10\n13\n99\n", true}, {"13\n", false}, {"10\n0\n", false}} {
		f := newTree(t)
		for pid, state := range map[string]string{"10": "T", "11": "t", "12": "S", "13": "Z"} {
			f.process(pid, "app", state, "100")
		}
		f.write("/sys/fs/cgroup/kubepods/pod"+apiUID+"/cri-containerd-c1.scope/cgroup.procs", c.pids)
		got := f.must().Cgroups[apiUID].Stopped
		if (len(got) == 1 && got[0] == "cri-containerd-c1.scope") != c.want || len(got) > 1 {
			t.Errorf("processes %q: got %v", c.pids, got)
		}
	}
}
