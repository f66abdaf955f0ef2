package queryapi_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/unixsocket"
)

// overSocket makes a request one that came over a Unix socket.
func overSocket(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.UnixAddr{Name: "/run/statusd.sock", Net: "unix"}))
}

// until is one text for all tests, so that none depends on when its second began.
var until = time.Now().Add(2 * time.Hour).Format(time.RFC3339)

// silenceText is a silence as a client sends it.
func silenceText(change ...string) string {
	text := `{"matchers":[{"name":"alertname","value":"Drift"}],"until":"` + until + `","by":"jan","comment":"the node is being replaced"}`
	return strings.NewReplacer(change...).Replace(text)
}

func send(s *queryapi.Server, method, target, body string, change ...func(*http.Request)) (*httptest.ResponseRecorder, metav1.Status) {
	r := overSocket(request(method, target, http.Header{"Content-Type": {"application/json"}}))
	r.Body = io.NopCloser(strings.NewReader(body))
	for _, c := range change {
		c(r)
	}
	answer := httptest.NewRecorder()
	s.Handler().ServeHTTP(answer, r)
	var status metav1.Status
	_ = json.Unmarshal(answer.Body.Bytes(), &status)
	return answer, status
}

// Each mistake is answered with what is wrong, where, and what to write instead; nothing is stored.
func TestSilence_Invalid_IsRefused(t *testing.T) {
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	tests := map[string]struct {
		body   string
		change func(*http.Request)
		code   int
		want   string
	}{
		"no content type":    {silenceText(), set("Content-Type", ""), 415, `content type "": want application/json`},
		"form":               {silenceText(), set("Content-Type", "text/plain"), 415, `content type "text/plain": want application/json`},
		"page of a site":     {silenceText(), set("Origin", "https://evil.example"), 403, "pages may not change this"},
		"page of this host":  {silenceText(), set("Sec-Fetch-Site", "same-origin"), 403, "pages may not change this"},
		"host":               {silenceText(), func(r *http.Request) { r.Host = "evil.example" }, 403, `host "evil.example": want localhost`},
		"empty":              {"", nil, 400, "silence: invalid body"},
		"no JSON":            {"matchers", nil, 400, "silence: invalid body"},
		"unknown field":      {silenceText(`"by"`, `"who"`), nil, 400, `unknown field "who"`},
		"two":                {silenceText() + silenceText(), nil, 400, "there is something after it"},
		"large":              {silenceText("the node", strings.Repeat("x", 70_000)), nil, 413, "more than 65536 bytes"},
		"no matcher":         {silenceText(`{"name":"alertname","value":"Drift"}`, ""), nil, 422, "no matchers; name at least one label, such as alertname="},
		"a list":             {"[]", nil, 400, "silence: the body cannot be array; /openapi.json"},
		"another type":       {silenceText(`"Drift"`, "5"), nil, 400, "value cannot be number; /openapi.json"},
		"many matchers":      {silenceText(`{"name":"alertname","value":"Drift"}`, strings.Repeat(`{"name":"a","value":"b"},`, 40)+`{"name":"a","value":"b"}`), nil, 422, "matchers: 41 are too many, want at most 32"},
		"no name":            {silenceText("alertname", ""), nil, 422, `matchers[0]: name "": want the name of a label`},
		"bad name":           {silenceText("alertname", "a-b"), nil, 422, `matchers[0]: name "a-b": want the name of a label`},
		"bad expression":     {silenceText(`"Drift"`, `"(","isRegex":true`), nil, 422, `matchers[0]: value "(" is not a regular expression: missing closing`},
		"outer expression":   {silenceText(`"Drift"`, `"a)(b","isRegex":true`), nil, 422, `matchers[0]: value "a)(b" is not a regular expression`},
		"matches everything": {silenceText(`"Drift"`, `".*","isRegex":true`), nil, 422, "together they match every alert"},
		"excludes little":    {silenceText(`"Drift"`, `"x","isEqual":false`), nil, 422, "together they match every alert"},
		"long value":         {silenceText("Drift", strings.Repeat("x", 2000)), nil, 422, "matchers[0]: name or value has more than 1024 bytes"},
		"no end":             {silenceText(`"until":"`+until+`",`, ""), nil, 422, "until: is missing"},
		"over already":       {silenceText(until, "2020-01-01T00:00:00Z"), nil, 422, "until: 2020-01-01T00:00:00Z is not in the future"},
		"endless":            {silenceText(until, "9999-01-01T00:00:00Z"), nil, 422, "until: 9999-01-01T00:00:00Z is more than a year away"},
		"no comment":         {silenceText("the node is being replaced", "  "), nil, 422, "comment: is empty; say why"},
		"long comment":       {silenceText("the node", strings.Repeat("x", 5000)), nil, 422, "bytes are too many, want at most 4096"},
		"no author":          {silenceText("jan", ""), nil, 422, "by: is empty; say who"},
		"long author":        {silenceText("jan", strings.Repeat("x", 300)), nil, 422, "by: 300 bytes are too many"},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			alerts := &fakeAlerts{}
			s := newServer(t, sampleNode(), func(o *queryapi.Options) { o.Alerts = alerts })
			change := c.change
			if change == nil {
				change = func(*http.Request) {}
			}
			answer, status := send(s, http.MethodPost, "/apis/v1/silences", c.body, change)
			if answer.Code != c.code || int(status.Code) != c.code || !strings.Contains(status.Message, c.want) {
				t.Errorf("got %d %s, want %d and a Status with %q", answer.Code, answer.Body, c.code, c.want)
			}
			if answer.Body.Len() > 4096 {
				t.Errorf("an error of %d bytes repeats too much of the request", answer.Body.Len())
			}
			if stored := alerts.Silences(); len(stored) > 0 {
				t.Errorf("it was stored: %v", stored)
			}
		})
	}
}

// What the server decides itself is not taken from the client, and isEqual is true unless it is given.
func TestSilenceIsStored(t *testing.T) {
	alerts := &fakeAlerts{}
	s := newServer(t, sampleNode(), func(o *queryapi.Options) { o.Alerts = alerts })
	answer, _ := send(s, http.MethodPost, "/apis/v1/silences", silenceText(`{"matchers":[`, `{"id":"mine","created":"2020-01-01T00:00:00Z","matchers":[{"name":"pod","value":"web-.*","isRegex":true,"isEqual":false},`))
	var got alert.Silence
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
		t.Fatalf("got %d %s", answer.Code, answer.Body)
	}
	if got.ID != "s1" || !got.Created.Equal(noon) || got.By != "jan" || len(got.Matchers) != 2 || got.Matchers[0].String() != "pod!~web-.*" || got.Matchers[1].String() != "alertname=Drift" {
		t.Errorf("got %+v", got)
	}
	if stored := alerts.Silences(); len(stored) != 1 || stored[0].ID != "s1" {
		t.Errorf("stored are %+v", stored)
	}
	alerts.broken = true
	if answer, status := send(s, http.MethodPost, "/apis/v1/silences", silenceText()); answer.Code != http.StatusInternalServerError || !strings.Contains(status.Message, "no space left") {
		t.Errorf("a silence that cannot be stored: got %d %s", answer.Code, answer.Body)
	}
	if answer, status := send(s, http.MethodDelete, "/apis/v1/silences/s2", ""); answer.Code != http.StatusNotFound || !strings.Contains(status.Message, `there is no silence "s2"`) {
		t.Errorf("a silence that is not there: got %d %s", answer.Code, answer.Body)
	}
	if answer, status := send(s, http.MethodDelete, "/apis/v1/silences/s1", ""); answer.Code != http.StatusOK || status.Status != metav1.StatusSuccess || len(alerts.Silences()) != 0 {
		t.Errorf("got %d %s", answer.Code, answer.Body)
	}
}

// Without rules there is nothing to silence.
func TestSilenceWithoutRules(t *testing.T) {
	s := newServer(t, sampleNode())
	for method, target := range map[string]string{http.MethodPost: "/apis/v1/silences", http.MethodDelete: "/apis/v1/silences/s1"} {
		if answer, status := send(s, method, target, silenceText()); answer.Code != http.StatusNotFound || !strings.Contains(status.Message, "there are no rules on this node") {
			t.Errorf("%s: got %d %s", method, answer.Code, answer.Body)
		}
	}
}

// One handler on both listeners: over TCP nothing is written, whatever the headers say.
func TestSilencesAreWrittenOnTheUnixSocketOnly(t *testing.T) {
	alerts := &fakeAlerts{silences: []alert.Silence{{ID: "s1"}}}
	s := newServer(t, sampleNode(), func(o *queryapi.Options) { o.Alerts = alerts })
	tcp := httptest.NewServer(s.Handler())
	defer tcp.Close()
	for method, target := range map[string]string{http.MethodPost: "/apis/v1/silences", http.MethodDelete: "/apis/v1/silences/s1"} {
		r, err := http.NewRequest(method, tcp.URL+target, strings.NewReader(silenceText()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "X-Forwarded-For": {"@"}, "Forwarded": {"for=unix"}}
		response, err := tcp.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var status metav1.Status
		if err := json.NewDecoder(response.Body).Decode(&status); err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusForbidden || status.Reason != metav1.StatusReasonForbidden {
			t.Errorf("%s over TCP: got %d %+v, want 403", method, response.StatusCode, status)
		}
	}
	if stored := alerts.Silences(); len(stored) != 1 {
		t.Fatalf("over TCP the silences became %+v", stored)
	}

	path := filepath.Join(t.TempDir(), "query.sock")
	listener, err := unixsocket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	socket := httptest.NewUnstartedServer(s.Handler())
	_ = socket.Listener.Close()
	socket.Listener = listener
	socket.Start()
	defer socket.Close()
	client := queryapi.NewSocketClient(path)
	defer client.Close()
	stored, err := client.AddSilence(t.Context(), alert.Silence{
		Matchers: []alert.Matcher{{Name: "pod", Value: "web", IsEqual: true}}, Until: time.Now().Add(time.Hour), By: "jan", Comment: "known",
	})
	if err != nil || stored.ID == "" {
		t.Fatalf("over the Unix socket: got %+v, %v", stored, err)
	}
	list, err := client.Silences(t.Context())
	if err != nil || len(list.Items) != 2 || list.Items[1].Matchers[0].String() != "pod=web" {
		t.Errorf("got %+v, %v", list, err)
	}
	if err := client.ExpireSilence(t.Context(), stored.ID); err != nil {
		t.Error(err)
	}
	if err := client.ExpireSilence(t.Context(), stored.ID); err == nil || !strings.Contains(err.Error(), "there is no silence") {
		t.Errorf("a silence that has ended: got %v", err)
	}
}

func TestMatcher(t *testing.T) {
	for text, c := range map[string]struct {
		matcher alert.Matcher
		yes, no string
	}{
		"pod=web":        {alert.Matcher{Name: "pod", Value: "web", IsEqual: true}, "web", "web-1"},
		"pod!=web":       {alert.Matcher{Name: "pod", Value: "web"}, "", "web"},
		"pod=~web-.|a":   {alert.Matcher{Name: "pod", Value: "web-.|a", IsRegex: true, IsEqual: true}, "web-1", "a1"},
		"pod!~web.*":     {alert.Matcher{Name: "pod", Value: "web.*", IsRegex: true}, "db", "web\nlines"},
		"pod=":           {alert.Matcher{Name: "pod", IsEqual: true}, "", "web"},
		"pod=a=b":        {alert.Matcher{Name: "pod", Value: "a=b", IsEqual: true}, "a=b", "a"},
		`pod=~say "yes"`: {alert.Matcher{Name: "pod", Value: `say "yes"`, IsRegex: true, IsEqual: true}, `say "yes"`, "yes"},
	} {
		if got := c.matcher.String(); got != text {
			t.Errorf("got %s, want %s", got, text)
		}
		if !c.matcher.Matches(c.yes) || c.matcher.Matches(c.no) {
			t.Errorf("%s: matches %q: %v, want true; matches %q: %v, want false", text, c.yes, c.matcher.Matches(c.yes), c.no, c.matcher.Matches(c.no))
		}
		if parsed, err := alert.ParseMatcher(text); err != nil || parsed != c.matcher {
			t.Errorf("%s is read as %+v, %v", text, parsed, err)
		}
	}
	for _, text := range []string{"", "pod", "=web", "!=web", "a-b=c", "pod=~(", "pod~x"} {
		if m, err := alert.ParseMatcher(text); err == nil {
			t.Errorf("%q is read as %+v, want an error", text, m)
		}
	}
	if m, err := alert.ParseMatcher(`pod="web 1"`); err != nil || m.Value != "web 1" {
		t.Errorf("a value in quotes is read as %+v, %v", m, err)
	}
}
