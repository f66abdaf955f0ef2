package status

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/statustest"
)

// gateway answers some requests with 200 and a body of its own.
type gateway struct {
	next  http.RoundTripper
	wrong atomic.Pointer[func(*http.Request) string] // "": the request is passed on
}

func (g *gateway) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if wrong := g.wrong.Load(); wrong != nil {
		body = (*wrong)(r)
	}
	if body == "" {
		return g.next.RoundTrip(r)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// A 200 that does not have the pod proves nothing: neither that a status was stored nor that a pod is gone.
func TestAnswersThatAreNotThePod_AreNotAccepted(t *testing.T) {
	const success = `{"kind":"Status","apiVersion":"v1","status":"Success"}`
	const another = `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"ns","name":"job","uid":"another"}}`
	on := func(method, body string) func(*http.Request) string {
		return func(r *http.Request) string {
			if method == "" || r.Method == method {
				return body
			}
			return ""
		}
	}
	for name, wrong := range map[string]func(*http.Request) string{
		"a Status for everything":        on("", success),
		"a Status for writes":            on(http.MethodPatch, success),
		"another pod for writes":         on(http.MethodPatch, another),
		"another kind for everything":    on("", `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n","uid":"u"}}`),
		"an empty object for everything": on("", `{}`),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				front := &front{api: statustest.New()}
				gate := &gateway{next: front}
				clientset, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "http://127.0.0.1"}, &http.Client{Transport: gate})
				must(err)
				memory := journal.NewMemory()
				w := newWorld(t, func(o *Options) { o.Client, o.Journal = NewClient(clientset.CoreV1(), "node"), memory })
				w.api = front.api
				w.api.OnStore(w.deliver)
				job := w.create("job", restartNever)
				w.run()
				gate.wrong.Store(&wrong)
				w.set(job, ended(job, 1))
				time.Sleep(10 * time.Minute)
				if got := w.manager.Pending(); len(got) != 1 || got[0].Err == nil {
					t.Errorf("Pending says %+v, want the pod with an error", got)
				}
				if got := len(memory.Finals()); got != 1 {
					t.Errorf("the journal holds %d ends, want the one that the API does not have", got)
				}
				gate.wrong.Store(nil)
				time.Sleep(time.Minute)
				if got := w.api.Pod(job).Status.Phase; got != v1.PodFailed {
					t.Errorf("the API says %s", got)
				}
				w.wantNothingPending()
			})
		})
	}
}

// wrongAnswers is a client that answers writes with another pod, or with nothing, as a proxy or a client of one's own may.
type wrongAnswers struct {
	Client
	JSONPatcher
	wrong  atomic.Bool
	answer func() *v1.Pod
	// answers counts the wrong ones. After manyAnswers they are right, so that a manager that repeats its requests at once comes to an end.
	answers atomic.Int64
}

const manyAnswers = 1000

func (c *wrongAnswers) isWrong() bool { return c.wrong.Load() && c.answers.Add(1) < manyAnswers }

func (c *wrongAnswers) PatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error) {
	if !strings.Contains(string(patch), "resourceVersion") && c.isWrong() {
		return c.answer(), nil
	}
	return c.Client.PatchStatus(ctx, namespace, name, patch)
}

func (c *wrongAnswers) JSONPatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error) {
	if c.isWrong() {
		return c.answer(), nil
	}
	return c.JSONPatcher.JSONPatchStatus(ctx, namespace, name, patch)
}

// Nor does it where a busy writer makes the manager write a status in two parts.
func TestAnswersThatAreNotThePod_AreNotAcceptedForAPartOfAStatus(t *testing.T) {
	for name, answer := range map[string]func(*v1.Pod) *v1.Pod{
		"no pod":       func(*v1.Pod) *v1.Pod { return nil },
		"an empty pod": func(*v1.Pod) *v1.Pod { return &v1.Pod{} },
		"another pod": func(pod *v1.Pod) *v1.Pod {
			other := newPod(pod.Name, func(p *v1.Pod) { p.UID, p.Status = "another", ended(pod, 1) })
			other.ResourceVersion = "1"
			return other
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := journal.NewMemory()
				client := &wrongAnswers{}
				var job *v1.Pod
				client.answer = func() *v1.Pod { return answer(job) }
				w := newWorld(t, func(o *Options) {
					client.Client = o.Client.(*statustest.Server).Client()
					client.JSONPatcher = client.Client.(JSONPatcher)
					o.Client, o.Journal = client, memory
				})
				job = w.create("job", restartNever)
				w.set(job, running(job, true))
				w.run()
				time.Sleep(time.Minute)
				w.api.SetFault(func(_ context.Context, s statustest.Request) error {
					if strings.Contains(s.Body, "resourceVersion") {
						w.api.Change(job, func(p *v1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, "beat", time.Now().String()+s.Body) })
					}
					return nil
				})
				client.wrong.Store(true)
				w.set(job, ended(job, 1))
				time.Sleep(time.Minute)
				if got := w.manager.Pending(); len(got) != 1 || got[0].Err == nil {
					t.Errorf("Pending says %+v, want the pod with an error", got)
				}
				if got := len(memory.Finals()); got != 1 {
					t.Errorf("the journal holds %d ends, want the one that the API does not have", got)
				}
				if got := client.answers.Load(); got > 30 {
					t.Errorf("%d wrong answers in a minute", got)
				}
				client.wrong.Store(false)
				time.Sleep(time.Minute)
				if got := w.api.Pod(job).Status.Phase; got != v1.PodFailed {
					t.Errorf("the API says %s", got)
				}
				w.wantNothingPending()
			})
		})
	}
}
