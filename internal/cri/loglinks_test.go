package cri

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// links are the names in the directory where collectors look for logs.
func (n *node) links() (names []string) {
	n.t.Helper()
	entries, err := os.ReadDir(filepath.Join(n.dir, "containers"))
	if err != nil && !os.IsNotExist(err) {
		n.t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func (n *node) wantLinks(story string, want ...string) {
	n.t.Helper()
	if got := n.links(); strings.Join(got, " ") != strings.Join(want, " ") {
		n.t.Errorf("%s: got links %q, want %q", story, got, want)
	}
}

// Collectors of logs find a log by a link that names its pod, as on a node of the kubelet. Links end with their logs.
func TestLogLinks(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	id := bareID(n.start(pod))
	link := "web_default_main-" + id + ".log"
	n.wantLinks("started", link)
	if to, err := os.Readlink(filepath.Join(n.dir, "containers", link)); err != nil || to != filepath.Join(n.dir, "logs", "default_web_uid-1", "main", "0.log") {
		t.Errorf("the link leads to %s, %v", to, err)
	}
	next := ""
	for attempt := 1; attempt <= keptAttempts; attempt++ {
		n.fake.change(func() { n.fake.exit(id, 1) })
		n.list()
		started, err := n.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], attempt)
		if err != nil {
			t.Fatal(err)
		}
		next, id = link, bareID(started)
		link = "web_default_main-" + id + ".log"
	}
	n.wantLinks("after restarts", next, link)
	n.fake.change(func() { n.fake.exit(id, 0) })
	n.list()
	if err := n.RemovePod(t.Context(), pod.UID); err != nil {
		t.Fatal(err)
	}
	n.wantLinks("removed")
}

// A container that the container runtime has lost while statusd was down leaves no link.
func TestLogLinks_OfALostContainer(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	id := bareID(n.start(pod))
	log := filepath.Join(n.logDir(pod), "main", "0.log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.Close()
	n.fake.change(func() { delete(n.fake.containers, id) })
	n.open()
	n.wantLinks("the log is there", "web_default_main-"+id+".log")
	if err := n.RemovePod(t.Context(), pod.UID); err != nil {
		t.Fatal(err)
	}
	n.wantLinks("removed")
}

// Links of a log that is gone, and only those, are removed at the start.
func TestLogLinks_OfLogsThatAreGone(t *testing.T) {
	n := newNode(t)
	for _, dir := range []string{"containers", "logs"} {
		if err := os.MkdirAll(filepath.Join(n.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(n.dir, "logs", "kept.log")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"gone.log": filepath.Join(n.dir, "logs", "gone.log"), "kept.log": kept, "other.log": "/no/such/log/of/others"} {
		if err := os.Symlink(to, filepath.Join(n.dir, "containers", name)); err != nil {
			t.Fatal(err)
		}
	}
	n.Close()
	n.open()
	n.wantLinks("after a restart", "kept.log", "other.log")
}

// The name of a file is not longer than file systems allow.
func TestLogLink_LongNames(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	pod.Name = strings.Repeat("p", 200)
	if name := filepath.Base(n.logLink(pod, "main", strings.Repeat("0", 64))); len(name) != 255 || !strings.HasSuffix(name, ".log") {
		t.Errorf("got %s with %d characters", name, len(name))
	}
}
