package kubeletside

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/unixsocket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPodsAPI(t *testing.T) {
	kubeletCases(t, func(t *testing.T) control { return newSocketKubelet(t) })
}

func TestGETPods(t *testing.T) {
	kubeletCases(t, func(t *testing.T) control { return newHTTPSKubelet(t) })
}

func answering(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

func podList(pods ...*v1.Pod) http.HandlerFunc {
	l := v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	for _, pod := range pods {
		l.Items = append(l.Items, *pod)
	}
	data, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	return answering(string(data))
}

func changedPod(change func(*v1.Pod)) *v1.Pod {
	p := pod("other")
	change(p)
	return p
}

// Whatever a kubelet answers, or what pretends to be one: the pods of the last whole answer stay, and the error says what is wrong.
func TestAnswersThatAreNone(t *testing.T) {
	k := newHTTPSKubelet(t)
	uid := k.put("stays")
	o := k.options()
	o.MaxBytes = 1 << 20
	w := watchSide(t, o)
	w.Await("a pod", func(f audit.Kubelet) bool { return running(f, uid) })
	for _, c := range []struct {
		name, want string
		answer     http.HandlerFunc
	}{
		{"no JSON", "not JSON", answering("<html>sign in</html>")},
		{"nothing", "not JSON", answering("")},
		{"half", "not JSON", answering(`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":`)},
		{"another object", "is this a kubelet", answering(`{}`)},
		{"another list", "is this a kubelet", answering(`{"kind":"NodeList","apiVersion":"v1","items":[]}`)},
		{"a kind without end", "is this a kubelet", answering(`{"kind":"` + strings.Repeat("x", 1000) + `"}`)},
		{"a list of numbers", "cannot be read", answering(`{"kind":"PodList","apiVersion":"v1","items":[1,2]}`)},
		{"null in the list", "without a UID", answering(`{"kind":"PodList","apiVersion":"v1","items":[null]}`)},
		{"a pod of wrong types", "cannot be read", answering(`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"uid":"u"},"spec":{"containers":"x"}}]}`)},
		{"no UID", "without a UID, ns/other", podList(changedPod(func(p *v1.Pod) { p.UID = "" }))},
		{"a UID twice", "two pods with the UID uid-of-other", podList(pod("other"), changedPod(func(p *v1.Pod) { p.Name = "second" }))},
		{"another node", "the kubelet of node n2 answers instead of the kubelet of n1", podList(pod("stays"), changedPod(func(p *v1.Pod) { p.Spec.NodeName = "n2" }))},
		{"too large", "larger than 1048576 bytes", answering(`{"kind":"PodList","apiVersion":"v1","items":[],"x":"` + strings.Repeat("x", 1<<20) + `"}`)},
		{"401", "does not accept the client certificate or the token", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "Unauthorized", http.StatusUnauthorized) }},
		{"403", "needs the right get on nodes/pods", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Forbidden (user=x)", http.StatusForbidden)
		}},
		{"500", "500 Internal Server Error: it broke", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "it\nbroke", http.StatusInternalServerError)
		}},
		{"redirect", "302 Found", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://example.com/", http.StatusFound)
		}},
		{"hangs up", "GET", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		{"hangs up in the middle", "unexpected EOF", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","items":[]}`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}},
	} {
		k.say(c.answer)
		facts := w.Await(c.name, func(f audit.Kubelet) bool { return strings.Contains(f.KubeletAnswer.Err, c.want) })
		if len(facts.KubeletPods) != 1 || facts.KubeletPods[uid].Pod == nil || len(facts.KubeletAnswer.Err) > 600 {
			t.Errorf("%s: got %+v, want the pod of the last whole answer", c.name, facts)
		}
		k.say(nil)
		w.Await("an answer", func(f audit.Kubelet) bool { return running(f, uid) })
	}
	// Pods of no node yet (a static pod that a kubelet has not completed) are those of this one.
	k.say(podList(changedPod(func(p *v1.Pod) { p.Spec.NodeName = "" })))
	w.Await("a pod", func(f audit.Kubelet) bool { return running(f, "uid-of-other") })
	// No pods are an answer.
	k.say(answering(`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}`))
	w.Await("no pods", func(f audit.Kubelet) bool { return known(f) && len(f.KubeletPods) == 0 })
}

// ended reports whether an error was seen or, if none is wanted, an answer. On a slow machine another error may come
// first: a timeout.
func ended(f audit.Kubelet, want string) bool {
	return want == "" && known(f) || want != "" && strings.Contains(f.KubeletAnswer.Err, want)
}

func TestCredentials(t *testing.T) {
	k := newHTTPSKubelet(t)
	for _, c := range []struct {
		name, want string
		change     func(*Options)
	}{
		{"another authority", "configure the CA of the kubelet's serving certificate", func(o *Options) { o.CAFile = "" }},
		{"another name", "configure the server name", func(o *Options) { o.ServerName = "kubelet.invalid" }},
		{"no authority", "read CA", func(o *Options) { o.CAFile += ".missing" }},
		{"an authority without a certificate", "no certificate in", func(o *Options) { o.CAFile = k.write("junk", "junk") }},
		{"no token", "401 Unauthorized", func(o *Options) { o.TokenFile = "" }},
		{"another token", "401 Unauthorized", func(o *Options) { o.TokenFile = k.write("other", "other") }},
		{"the file of the token is missing", "read bearer token", func(o *Options) { o.TokenFile += ".missing" }},
		{"no certificate", "no such file", func(o *Options) { o.CertFile, o.KeyFile = "/nonexistent/cert", "/nonexistent/key" }},
		{"not checked", "", func(o *Options) { o.CAFile, o.ServerName, o.Insecure = "", "", true }},
	} {
		o := k.options()
		c.change(&o)
		w := watchSide(t, o)
		w.Await(c.name, func(f audit.Kubelet) bool { return ended(f, c.want) })
	}

	// A token that was renewed is used without a restart.
	o := k.options()
	o.TokenFile = k.write("renewed", "old")
	w := watchSide(t, o)
	w.Await("a refusal", func(f audit.Kubelet) bool { return strings.Contains(f.KubeletAnswer.Err, "401") })
	k.write("renewed", secret)
	w.Await("an answer", known)
}

func TestUnchangedPodsAreTheSame(t *testing.T) {
	k := newHTTPSKubelet(t)
	a, b := k.put("a"), k.put("b")
	w := watchSide(t, k.options())
	first := w.Await("two pods", func(f audit.Kubelet) bool { return running(f, a) && running(f, b) })
	changed := pod("b")
	changed.Status.Message = "changed"
	k.mu.Lock()
	k.pods.pods[b] = changed
	k.mu.Unlock()
	second := w.Await("a change", func(f audit.Kubelet) bool { return f.KubeletPods[b].Pod.Status.Message == "changed" })
	if second.KubeletPods[a] != first.KubeletPods[a] {
		t.Errorf("got another copy of a pod that has not changed: %v, %v", first.KubeletPods[a].At, second.KubeletPods[a].At)
	}
	if second.KubeletPods[b].At.Equal(first.KubeletPods[b].At) || !second.KubeletAnswer.At.After(first.KubeletAnswer.At) {
		t.Errorf("got %v and %v, want times that go on", first.KubeletPods[b].At, second.KubeletPods[b].At)
	}
}

// A kubelet that was restarted between two looks may not have all its pods yet.
func TestARestartBetweenTwoLooksIsAGap(t *testing.T) {
	k := newHTTPSKubelet(t)
	o := k.options()
	o.Pace, o.Least = 24*time.Hour, time.Millisecond
	w := watchSide(t, o)
	first := w.Await("an answer", known)
	k.kill()
	k.start()
	uid := k.put("new")
	w.Side.Refresh()
	second := w.Await("another answer", func(f audit.Kubelet) bool { return running(f, uid) })
	if !second.KubeletAnswer.Since.After(first.KubeletAnswer.Since) {
		t.Errorf("got %+v after %+v, want that it answers since its restart", second.KubeletAnswer, first.KubeletAnswer)
	}
}

// The watch of the Pods API brings changes between two lists.
func TestTheWatchBringsChanges(t *testing.T) {
	k := newSocketKubelet(t)
	o := k.options()
	o.Pace, o.Least, o.Timeout = 24*time.Hour, time.Millisecond, time.Minute
	w := watchSide(t, o)
	first := w.Await("an answer", known)
	uid := k.put("late")
	w.Await("a pod", func(f audit.Kubelet) bool { return running(f, uid) })
	k.remove(uid, "late")
	last := w.Await("its removal", func(f audit.Kubelet) bool { return f.KubeletPods[uid].Pod == nil })
	if len(first.KubeletPods) != 0 || !last.KubeletStatuses {
		t.Errorf("got %+v, then %+v", first, last)
	}
	// The end of the watch asks for a list.
	k.kill()
	w.Await("silence", silent)
}

// A kubelet that serves no watch, or ends it, was not restarted for that.
func TestAWatchThatIsNotServedIsNoGap(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := unixsocket.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	podsv1alpha1.RegisterPodsServer(server, &hostile{})
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	defer func() {
		server.Stop()
		<-served
	}()
	w := watchSide(t, Options{Node: "n1", Socket: socket, Timeout: time.Hour}) // an answer that came too late would be a gap
	first := w.Await("an answer", known)
	for range 5 {
		w.look()
	}
	if last := w.Side.Facts(); !last.KubeletAnswer.Since.Equal(first.KubeletAnswer.Since) {
		t.Errorf("got %+v after %+v, want answers without a gap", last.KubeletAnswer, first.KubeletAnswer)
	}
}

// What a list says is older than what the watch has brought since it was asked for.
func TestAListDoesNotUndoTheWatch(t *testing.T) {
	k := newSocketKubelet(t)
	o := k.options()
	o.Timeout = time.Hour // the test looks once, and needs the answer
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	uid, gone := k.put("changes"), k.put("goes")
	if err := s.look(ctx); err != nil {
		t.Fatal(err)
	}
	asked := time.Now()
	old, err := s.ask(ctx)
	if err != nil {
		t.Fatal(err)
	}
	newer := pod("changes")
	newer.Status.Message = "newer"
	s.put(uid, newer)
	s.put(gone, nil)
	s.put("uid-of-new", pod("new"))
	s.listed(old, asked)
	facts := s.Facts()
	if len(facts.KubeletPods) != 2 || facts.KubeletPods[uid].Pod != newer || facts.KubeletPods["uid-of-new"].Pod == nil {
		t.Errorf("got %+v, want what the watch has brought", facts.KubeletPods)
	}
}

// hostile is a Pods API that says what a test wants.
type hostile struct {
	podsv1alpha1.UnimplementedPodsServer
	pods [][]byte
}

func (h *hostile) ListPods(context.Context, *podsv1alpha1.ListPodsRequest) (*podsv1alpha1.ListPodsResponse, error) {
	return &podsv1alpha1.ListPodsResponse{Pods: h.pods}, nil
}

func TestHostilePodsAPI(t *testing.T) {
	encoded := func(p *v1.Pod) []byte {
		data, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for _, c := range []struct {
		name, want string
		pods       [][]byte
	}{
		{"bytes that are no pod", "cannot be read", [][]byte{{0xff, 0xff, 0xff}}},
		{"an empty pod", "without a UID", [][]byte{{}}},
		{"a UID twice", "two pods with the UID", [][]byte{encoded(pod("a")), encoded(pod("a"))}},
		{"another node", "of node n2", [][]byte{encoded(changedPod(func(p *v1.Pod) { p.Spec.NodeName = "n2" }))}},
		{"megabytes", "too large", [][]byte{bytes.Repeat([]byte{1}, 2<<20)}},
		{"a watch that is not served", "", [][]byte{encoded(pod("a"))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			listener, err := unixsocket.Listen(socket)
			if err != nil {
				t.Fatal(err)
			}
			server := grpc.NewServer()
			podsv1alpha1.RegisterPodsServer(server, &hostile{pods: c.pods})
			served := make(chan struct{})
			go func() {
				defer close(served)
				_ = server.Serve(listener)
			}()
			defer func() {
				server.Stop()
				<-served
			}()
			w := watchSide(t, Options{Node: "n1", Socket: socket, MaxBytes: 1 << 20})
			w.Await(c.want, func(f audit.Kubelet) bool { return ended(f, c.want) })
		})
	}
}

// Where the Pods API is not served, GET /pods is.
func TestTheOtherWay(t *testing.T) {
	https := newHTTPSKubelet(t)
	uid := https.put("by-https")
	o := https.options()
	o.Socket = filepath.Join(t.TempDir(), "s")
	w := watchSide(t, o)
	facts := w.Await("a pod", func(f audit.Kubelet) bool { return running(f, uid) })
	if facts.KubeletStatuses || !strings.HasPrefix(facts.KubeletAnswer.From, "https://") {
		t.Errorf("got %+v, own statuses %t", facts.KubeletAnswer, facts.KubeletStatuses)
	}

	socket := &socketKubelet{pods: newPods(), t: t, socket: o.Socket}
	socket.start()
	defer socket.kill()
	other := socket.put("by-socket")
	facts = w.Await("a pod of the socket", func(f audit.Kubelet) bool { return running(f, other) })
	if !facts.KubeletStatuses || facts.KubeletAnswer.From != o.Socket || len(facts.KubeletPods) != 1 {
		t.Errorf("got %+v, own statuses %t", facts.KubeletAnswer, facts.KubeletStatuses)
	}

	alone := watchSide(t, Options{Node: "n1", Socket: o.Socket + ".missing"})
	alone.Await("an error", func(f audit.Kubelet) bool { return strings.Contains(f.KubeletAnswer.Err, "feature gate PodsAPI") })
}

func TestOptionsThatCannotBe(t *testing.T) {
	for want, o := range map[string]Options{
		"no Node":                {Socket: "/s"},
		"neither Socket nor URL": {Node: "n"},
		"not https://":           {Node: "n", URL: "http://127.0.0.1:10255"},
		"CertFile and KeyFile":   {Node: "n", URL: DefaultURL, CertFile: "c"},
		"contradict":             {Node: "n", URL: DefaultURL, CAFile: "c", Insecure: true},
		"negative Timeout":       {Node: "n", Socket: "/s", Timeout: -1},
		"the pace must be":       {Node: "n", Socket: "/s", Pace: time.Second, Least: time.Minute},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", o, err, want)
		}
	}
}
