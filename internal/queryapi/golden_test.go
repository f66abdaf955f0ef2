package queryapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/view"
)

var rewrite = flag.Bool("rewrite", false, "record the answers as they are now")

// requests are one for each thing that a handler can answer, by the name of its golden file.
var requests = map[string]struct {
	method, target string
	header         http.Header
	// observed: the server has an audit, a guard and rules.
	observed bool
}{
	"pods-kubelet":          {target: "/pods?pretty=true"},
	"pods":                  {target: "/apis/v1/pods"},
	"pods-namespace":        {target: "/apis/v1/pods?namespace=shop"},
	"pods-state-gone":       {target: "/apis/v1/pods?state=Failed&gone=true"},
	"pod-crash-loop":        {target: "/apis/v1/pods/default/loop"},
	"pod-not-ready":         {target: "/apis/v1/pods/shop/db"},
	"pod-gone":              {target: "/apis/v1/pods/default/old"},
	"node":                  {target: "/apis/v1/node"},
	"openapi":               {target: "/openapi.json"},
	"error-unknown-path":    {target: "/apis/v2/pods"},
	"error-method":          {method: http.MethodPost, target: "/apis/v1/pods"},
	"error-unknown-pod":     {target: "/apis/v1/pods/default/nowhere"},
	"error-dots":            {target: "/apis/v1/pods/default/..%2f..%2fetc"},
	"error-unicode":         {target: "/apis/v1/pods/default/p%C3%B6d"},
	"error-state":           {target: "/apis/v1/pods?state=Sleepy"},
	"error-gone":            {target: "/apis/v1/pods?gone=maybe"},
	"error-parameter":       {target: "/apis/v1/node?verbose=1"},
	"error-parameter-twice": {target: "/apis/v1/pods?namespace=a&namespace=b"},
	"error-query":           {target: "/apis/v1/pods?namespace=%zz"},
	"error-since":           {target: "/apis/v1/watch?since=yesterday"},
	"error-last-event-id":   {target: "/apis/v1/watch", header: http.Header{"Last-Event-Id": {"e1-x"}}},
	"error-watch-pod":       {target: "/apis/v1/watch?pod=web"},
	"error-watch-unknown":   {target: "/apis/v1/watch?pod=default/nowhere"},
	"error-host":            {target: "/apis/v1/pods", header: http.Header{"Host": {"evil.example:10265"}}},
	"observed-pods":         {target: "/apis/v1/pods", observed: true},
	"observed-pod":          {target: "/apis/v1/pods/default/web", observed: true},
	"observed-pod-fine":     {target: "/apis/v1/pods/shop/db", observed: true},
	"observed-node":         {target: "/apis/v1/node", observed: true},
	"audit":                 {target: "/apis/v1/audit", observed: true},
	"guard":                 {target: "/apis/v1/guard", observed: true},
	"load":                  {target: "/apis/v1/load", observed: true},
	"error-no-load":         {target: "/apis/v1/load"},
	"alerts":                {target: "/apis/v1/alerts", observed: true},
	"silences":              {target: "/apis/v1/silences", observed: true},
	"error-no-audit":        {target: "/apis/v1/audit"},
	"error-no-guard":        {target: "/apis/v1/guard"},
	"error-no-alerts":       {target: "/apis/v1/alerts"},
	"error-no-silences":     {target: "/apis/v1/silences"},
	"error-silence-read":    {target: "/apis/v1/silences/s1", observed: true},
	"error-silence-tcp":     {method: http.MethodPost, target: "/apis/v1/silences", observed: true},
	"error-expire-tcp":      {method: http.MethodDelete, target: "/apis/v1/silences/s1", observed: true},
	"error-audit-method":    {method: http.MethodPost, target: "/apis/v1/audit", observed: true},
	"error-silences-method": {method: http.MethodPut, target: "/apis/v1/silences", observed: true},
	"error-cross-site":      {target: "/apis/v1/watch", header: http.Header{"Sec-Fetch-Site": {"cross-site"}}},
}

func request(method, target string, header http.Header) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Method, r.Host = method, "localhost:10265"
	if method == "" {
		r.Method = http.MethodGet
	}
	for name, values := range header {
		r.Header[name] = values
		if name == "Host" {
			r.Host = values[0]
		}
	}
	path, query, _ := strings.Cut(target, "?")
	r.URL.RawQuery = query
	if u, err := r.URL.Parse(path); err == nil {
		r.URL.Path, r.URL.RawPath = u.Path, u.RawPath
	}
	return r
}

func TestGolden(t *testing.T) {
	for name, c := range requests {
		t.Run(name, func(t *testing.T) {
			answer := httptest.NewRecorder()
			var options []func(*queryapi.Options)
			if c.observed {
				options = append(options, observed)
			}
			newServer(t, sampleNode(), options...).Handler().ServeHTTP(answer, request(c.method, c.target, c.header))
			var b strings.Builder
			fmt.Fprintf(&b, "%s %s\n%d\n", request(c.method, "/", nil).Method, c.target, answer.Code)
			var names []string
			for name := range answer.Header() {
				names = append(names, name)
			}
			slices.Sort(names)
			for _, name := range names {
				fmt.Fprintf(&b, "%s: %s\n", name, answer.Header().Get(name))
			}
			text := answer.Body.Bytes()
			if name == "openapi" {
				text = withoutForeign(t, text)
			}
			var body bytes.Buffer
			if err := json.Indent(&body, text, "", "  "); err != nil {
				t.Fatalf("the answer is no JSON: %v: %s", err, answer.Body)
			}
			fmt.Fprintf(&b, "\n%s", body.String())
			if strings.Contains(b.String(), "hunter2") {
				t.Error("the answer has what containers are given")
			}
			golden(t, name+".txt", b.String())
		})
	}
}

// withoutForeign leaves out the schemas of other packages' types, which are theirs to change:
// TestOpenAPIHasTheFieldsOfTheTypes compares them with the types.
func withoutForeign(t *testing.T, text []byte) []byte {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	maps.DeleteFunc(schemas, func(name string, _ any) bool {
		return !slices.ContainsFunc(documented, func(value any) bool {
			made := reflect.TypeOf(value)
			own := []string{reflect.TypeFor[view.PodList]().PkgPath(), reflect.TypeFor[alert.Alert]().PkgPath(), reflect.TypeFor[queryapi.AlertList]().PkgPath()}
			return name == made.Name() && slices.Contains(own, made.PkgPath())
		})
	})
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *rewrite {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s: got\n%s\nwant\n%s\nif it should be so, run with -rewrite", name, got, want)
	}
}
