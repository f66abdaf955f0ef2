package gateway

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/test/robustness/record"
)

const pod = `{"kind":"Pod","metadata":{"name":"web","uid":"u","resourceVersion":"7"},"status":{"phase":"Running","message":"report 3"}}`

// proxy is a gateway before a server that counts its requests, and what it has recorded.
func proxy(t *testing.T, serve http.HandlerFunc) (g *Gateway, url string, recorded func() []record.Record) {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	var history bytes.Buffer
	written := record.NewWriter(&history)
	g, err := New(&rest.Config{Host: server.URL}, written, nil)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(g)
	t.Cleanup(front.Close)
	return g, front.URL, func() []record.Record {
		if err := written.Flush(); err != nil {
			t.Fatal(err)
		}
		all, err := record.Read(bytes.NewReader(history.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
}

func patch(t *testing.T, url, body string) (code int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, url+"/api/v1/namespaces/n/pods/web/status", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("User-Agent", "agent/4")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// What the agent is answered, whether the server gets the request, and what is recorded, for each kind of rule.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name         string
		rule         Rule
		code, served int
		answer       string // part of it
		number       int    // of the report that is recorded as answered by the server
	}{
		{"no rule", Rule{Name: "none", Shares: 1}, 200, 1, "report 3", 3},
		{"answered in place of the server", Rule{Name: "r", Code: 503, Before: true}, 503, 0, "injected", 0},
		{"done, and the answer is another", Rule{Name: "r", Code: 504}, 504, 1, "injected", 3},
		{"done, and the answer is cut", Rule{Name: "r", Code: 200}, 200, 1, pod[:len(pod)/2], 3},
		{"another body", Rule{Name: "r", Code: 200, Body: "<html>", Before: true}, 200, 0, "<html>", 0},
		{"every second", Rule{Name: "r", Code: 500, Before: true, Every: 2}, 200, 1, "report 3", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			served := 0
			g, url, recorded := proxy(t, func(w http.ResponseWriter, _ *http.Request) { served++; io.WriteString(w, pod) })
			unset := g.Set(c.rule)
			code, answer := patch(t, url, `{"metadata":{"uid":"u"}}`)
			if code != c.code || served != c.served || !strings.Contains(answer, c.answer) {
				t.Errorf("got %d %q, served %d; want %d with %q, served %d", code, answer, served, c.code, c.answer, c.served)
			}
			r := recorded()[0]
			if r.Agent != 4 || r.Verb != http.MethodPatch || r.Name != "web" || r.UID != "u" || r.Sent != c.code || (r.Code == 200) != (c.served == 1) {
				t.Errorf("recorded %+v", r)
			}
			if number := r.Facts; (number == nil) != (c.number == 0) || number != nil && number.Number != c.number {
				t.Errorf("recorded %+v, want report %d", number, c.number)
			}
			unset()
			if code, _ := patch(t, url, "{}"); code != 200 {
				t.Errorf("after the rule was unset: got %d", code)
			}
		})
	}
}

// events of a watch that a fault tampers with.
func TestWatches(t *testing.T) {
	const added, bookmark = `{"type":"ADDED","object":{}}` + "\n", `{"type":"BOOKMARK","object":{}}` + "\n"
	for _, c := range []struct {
		fault Watch
		want  string
	}{
		{"", added + bookmark}, {Duplicated, added + added + bookmark}, {Expired, gone},
	} {
		t.Run(string(c.fault), func(t *testing.T) {
			g, url, _ := proxy(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, added+bookmark) })
			if c.fault != "" {
				defer g.SetWatch(c.fault)()
			}
			if got := follow(t, url); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A silent watch shows nothing, and ends when the fault does.
func TestSilentWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Gateway{rules: newRules()}
		unset := g.SetWatch(Silent)
		shown, goesOn := httptest.NewRecorder(), make(chan bool, 1)
		go func() { goesOn <- g.rules.watch.pass(t.Context(), shown, event{line: []byte("{}\n")}) }()
		synctest.Wait()
		if len(goesOn) > 0 {
			t.Fatal("the watch has not waited for the end of the fault")
		}
		unset()
		if <-goesOn || shown.Body.Len() > 0 {
			t.Errorf("the watch goes on, and has shown %q", shown.Body)
		}
	})
}

// A late event comes as late as it should, however long the one before it has waited.
func TestLateWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Gateway{rules: newRules()}
		defer g.SetWatch(Late)()
		came := time.Now()
		for range 2 {
			g.rules.watch.pass(t.Context(), httptest.NewRecorder(), event{[]byte("{}\n"), came})
		}
		if got := time.Since(came); got != lateness {
			t.Errorf("two events that came at once were shown after %s, want %s", got, lateness)
		}
	})
}

func follow(t *testing.T, url string) (events string) {
	t.Helper()
	response, err := http.Get(url + "/api/v1/pods?watch=1")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return events
		}
		events += line
	}
}

// The UID of a write is found in each form in which clients send it.
func TestUIDOf(t *testing.T) {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions("a")
	options.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		t.Fatal("no protobuf")
	}
	protobuf, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, v1.SchemeGroupVersion), options)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ body, want string }{
		"merge patch":         {`{"metadata":{"uid":"a"}}`, "a"},
		"JSON patch":          {`[{"op":"test","path":"/metadata/uid","value":"a"}]`, "a"},
		"options of a DELETE": {`{"preconditions":{"uid":"a"}}`, "a"},
		"the same, protobuf":  {string(protobuf), "a"},
		"none":                {`{}`, ""},
		"nothing":             {``, ""},
	} {
		if got := uidOf([]byte(c.body)); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
