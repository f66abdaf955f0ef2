package source

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeNotifier signals when the test says so.
type fakeNotifier struct{ c chan struct{} }

func (f fakeNotifier) rearm()                   {}
func (f fakeNotifier) changes() <-chan struct{} { return f.c }
func (f fakeNotifier) close()                   {}

// story records what sources say.
type story struct {
	mu   sync.Mutex
	said []string
}

func (s *story) handle(c Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, describe(c))
}

// take returns what was said since the last call.
func (s *story) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := strings.Join(s.said, "; ")
	s.said = nil
	return said
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(expand(text)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func newTestManifests(t *testing.T, dir string, s *story, notify func(string) (notifier, error)) *Manifests {
	t.Helper()
	m, err := NewManifests(ManifestsOptions{Directory: dir, NodeName: "n", Handle: s.handle, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m.notify = notify
	return m
}

func TestManifestsAreReadAtOnceOnNotificationAndByRescan(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "web.yaml")
	writeFile(t, path, "pod web image=v1")
	synctest.Test(t, func(t *testing.T) {
		var s story
		changed := make(chan struct{}, 1)
		m := newTestManifests(t, dir, &s, func(string) (notifier, error) { return fakeNotifier{changed}, nil })
		if m.HasSynced() {
			t.Error("synced before Run: nothing was read yet")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		expect := func(when, want string) {
			t.Helper()
			synctest.Wait()
			if got := s.take(); got != want {
				t.Errorf("%s: got %q, want %q", when, got, want)
			}
		}
		expect("at start", "file set: default/web-n(v1)")
		if !m.HasSynced() {
			t.Error("not synced after the first reading was handled")
		}

		writeFile(t, path, "pod web image=v2")
		changed <- struct{}{}
		expect("while the file may still be written", "")
		time.Sleep(settle)
		expect("once quiet", "file remove: default/web-n(v1); file update: default/web-n(v2)")

		writeFile(t, path, "pod web image=v3")
		for range 20 { // a file that is written all the time
			changed <- struct{}{}
			time.Sleep(settle / 2)
		}
		expect("never quiet, but for long enough", "file remove: default/web-n(v2); file update: default/web-n(v3)")

		writeFile(t, path, "pod web image=v4")
		expect("without notification", "")
		time.Sleep(20 * time.Second)
		expect("after the rescan period", "file remove: default/web-n(v3); file update: default/web-n(v4)")

		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v at the end of its context, want nil", err)
		}
	})
}

func TestManifestsWithoutNotificationAreRescanned(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var s story
		m := newTestManifests(t, dir, &s, func(string) (notifier, error) { return nil, errors.New("too many open files") })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go m.Run(ctx)
		synctest.Wait()
		s.take()
		writeFile(t, filepath.Join(dir, "web.yaml"), "pod web")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if got, want := s.take(), "file update: default/web-n(host)"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// With the real kernel: the rescan period is an hour, so only notification can help.
func TestManifestsSeeChangesThroughTheKernel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "manifests")
	changes := make(chan string, 16) // more than the test makes
	m, err := NewManifests(ManifestsOptions{Directory: dir, NodeName: "n", Rescan: time.Hour, Logger: slog.New(slog.DiscardHandler),
		Handle: func(c Change) { changes <- describe(c) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	expect := func(what string, want ...string) {
		t.Helper()
		for _, w := range want {
			if got := <-changes; got != w {
				t.Errorf("%s: got %q, want %q", what, got, w)
			}
		}
	}
	expect("no directory", "file set:")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "web.yaml"), "pod web")
	expect("directory and file made", "file update: default/web-n(host)")
	writeFile(t, filepath.Join(dir, "tmp"), "pod web image=v2")
	if err := os.Rename(filepath.Join(dir, "tmp"), filepath.Join(dir, "web.yaml")); err != nil {
		t.Fatal(err)
	}
	expect("file replaced", "file remove: default/web-n(host)", "file update: default/web-n(v2)")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	expect("directory removed", "file remove: default/web-n(v2)")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "web.yaml"), "pod web image=v3")
	expect("directory back", "file update: default/web-n(v3)")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestConstructorsRefuseWhatCannotWork(t *testing.T) {
	handle := func(Change) {}
	for name, err := range map[string]error{
		"manifests without directory":      second(NewManifests(ManifestsOptions{NodeName: "n", Handle: handle})),
		"manifests without node":           second(NewManifests(ManifestsOptions{Directory: "d", Handle: handle})),
		"manifests without handler":        second(NewManifests(ManifestsOptions{Directory: "d", NodeName: "n"})),
		"manifests with a negative period": second(NewManifests(ManifestsOptions{Directory: "d", NodeName: "n", Handle: handle, Rescan: -1})),
		"api without client":               second(NewAPI(APIOptions{NodeName: "n", Handle: handle})),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestSerialHandlesOneChangeAtATime(t *testing.T) {
	inside := 0
	handle := Serial(func(Change) {
		inside++ // the race detector speaks up if two are here
		if inside != 1 {
			t.Error("two changes are handled at once")
		}
		inside--
	})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { handle(Change{}) })
	}
	wg.Wait()
}
