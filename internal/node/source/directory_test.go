package source

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// A line "pod NAME image=IMAGE" in a story stands for a whole manifest.
func expand(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "pod" {
			b.WriteString(line)
			continue
		}
		image := "host"
		if len(fields) > 2 {
			image = strings.TrimPrefix(fields[2], "image=")
		}
		fmt.Fprintf(&b, "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: %q}]}\n", fields[1], image)
	}
	return b.String()
}

func describe(c Change) string {
	var names []string
	for _, p := range c.Pods {
		names = append(names, fmt.Sprintf("%s(%s)", key(p), p.Spec.Containers[0].Image))
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s: %s", c.Origin, c.Op, strings.Join(names, " ")))
}

func TestDirectoryStories(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "manifests")
	hidden := filepath.Join(root, "hidden")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var said []string
	source, err := NewManifests(ManifestsOptions{Directory: dir, NodeName: "n", Logger: slog.New(slog.DiscardHandler), Handle: func(c Change) { said = append(said, describe(c)) }})
	must(err)
	datadriven.RunTest(t, "testdata/directory.txt", func(t *testing.T, d *datadriven.TestData) string {
		var name, to string
		d.MaybeScanArgs(t, "name", &name)
		d.MaybeScanArgs(t, "to", &to)
		path := filepath.Join(dir, name)
		switch d.Cmd {
		case "write":
			must(os.MkdirAll(filepath.Dir(path), 0o755))
			must(os.WriteFile(path, []byte(expand(d.Input)), 0o644))
		case "remove":
			must(os.RemoveAll(path))
		case "link":
			must(os.RemoveAll(path))
			must(os.Symlink(to, path))
		case "hide": // a file in its place: unreadable as a directory, also for root
			must(os.Rename(dir, hidden))
			must(os.WriteFile(dir, nil, 0o644))
		case "unhide":
			must(os.Remove(dir))
			must(os.Rename(hidden, dir))
		case "read":
			said = nil
			source.read()
			for _, p := range source.Problems() {
				said = append(said, "problem: "+strings.ReplaceAll(p.Error(), root, ""))
			}
			if len(said) > 0 {
				return strings.Join(said, "\n") + "\n"
			}
		default:
			t.Fatalf("unknown command %s", d.Cmd)
		}
		return ""
	})
}

func TestSeenIsWhenTheContentWasSeenFirst(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(expand(text)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := directory{path: dir, node: "n", files: map[string]*manifestFile{}}
	read := func(at time.Time) *v1.Pod {
		pods, problems, err := d.read(at)
		if len(pods) != 1 || len(problems) > 0 || err != nil {
			t.Fatalf("got pods %v, problems %v, error %v, want one pod", pods, problems, err)
		}
		return pods[0]
	}
	first := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	write("pod web")
	if got, want := read(first).Annotations[podstatus.SeenAnnotation], first.Format(time.RFC3339Nano); got != want {
		t.Errorf("got seen %s, want %s", got, want)
	}
	write("pod web\n# a comment")
	if got, want := read(first.Add(time.Hour)).Annotations[podstatus.SeenAnnotation], first.Format(time.RFC3339Nano); got != want {
		t.Errorf("after a comment: got seen %s, want still %s", got, want)
	}
	write("pod web image=v2")
	later := first.Add(2 * time.Hour)
	if got, want := read(later).Annotations[podstatus.SeenAnnotation], later.Format(time.RFC3339Nano); got != want {
		t.Errorf("after an edit: got seen %s, want %s", got, want)
	}
}

func TestUnreadableFilesAreReported(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, maxManifest+1); err != nil {
		t.Fatal(err)
	}
	d := directory{path: dir, node: "n", files: map[string]*manifestFile{}}
	_, problems, err := d.read(time.Now())
	if err != nil || len(problems) != 1 || !strings.Contains(problems[0].Reason, "larger than 10 MiB") {
		t.Errorf("got problems %v, error %v, want one that says the file is too large", problems, err)
	}
}

func TestKnownPodsAreRemovedBeforeTheirNameIsTakenAgain(t *testing.T) {
	var said []Op
	k := &known{origin: FromFile, handle: func(c Change) { said = append(said, c.Op) }}
	pod := func(uid types.UID) *v1.Pod {
		p := &v1.Pod{}
		p.UID, p.Name = uid, "web"
		return p
	}
	same := func(_, _ *v1.Pod) bool { return true }
	k.replace([]*v1.Pod{pod("1")}, same)
	k.replace([]*v1.Pod{pod("2")}, same)
	if got, want := fmt.Sprint(said), fmt.Sprint([]Op{Set, Remove, Update}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
