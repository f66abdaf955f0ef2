package status

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/statustest"
)

// listCounter counts the lists that ask for the version only.
type listCounter struct {
	next  http.RoundTripper
	count atomic.Int32
}

func (c *listCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && r.URL.Query().Get("fieldSelector") == "metadata.name=-,spec.nodeName=node" {
		c.count.Add(1)
	}
	return c.next.RoundTrip(r)
}

// Managers of one clientset share the reads of the version without being asked to.
func TestManagersOfOneClientset_ShareVersionReadsByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := statustest.New()
		counter := &listCounter{next: &front{api: api}}
		clientset, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "http://127.0.0.1", QPS: -1}, &http.Client{Transport: counter})
		must(err)
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			w := newWorld(t, func(o *Options) { o.Client = NewClient(clientset.CoreV1(), "node") })
			w.api = api
			pod := w.create(name)
			w.manager.ObservePod(pod)
			time.Sleep(700 * time.Millisecond) // they do not start at once
			w.run()
			w.set(pod, running(pod, true))
		}
		counter.count.Store(0)
		time.Sleep(time.Hour)
		if got := counter.count.Load(); got < 55 || got > 61 {
			t.Errorf("%d reads of the version in an hour, want one a minute for all managers", got)
		}
	})
}

func TestManagersOfOtherClientsets_HaveOtherVersions(t *testing.T) {
	var versions []*Versions
	for range 2 {
		clientset, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1"})
		must(err)
		o := Options{Client: NewClient(clientset.CoreV1(), "node")}
		o.setDefaults()
		versions = append(versions, o.Versions)
	}
	if versions[0] == versions[1] {
		t.Error("managers of two clientsets, which may be of two servers, share their reads")
	}
}

// stoppedReader is asked by a manager that stops meanwhile.
type stoppedReader struct {
	stop  context.CancelFunc
	reads int
}

func (r *stoppedReader) ResourceVersion(ctx context.Context) (string, error) {
	r.reads++
	if r.stop != nil {
		r.stop()
		r.stop = nil
		return "", ctx.Err()
	}
	return "7", nil
}

// A manager that stops during its read leaves the others without a result, and so they ask.
func TestVersionReadOfAStoppedManager_CountsForNoOther(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	reader := &stoppedReader{stop: stop}
	v := NewVersions(reader, time.Hour)
	v.since(ctx, time.Time{})
	if read := v.since(t.Context(), time.Time{}); read.err != nil || read.version != 7 || reader.reads != 2 {
		t.Errorf("the next manager got %+v after %d reads, want version 7 of a read of its own", read, reader.reads)
	}
}
