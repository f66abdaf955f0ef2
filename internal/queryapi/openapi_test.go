package queryapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/machine/load"
	"github.com/statusd/statusd/internal/machine/logs"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/view"
)

type openAPI struct {
	Paths map[string]map[string]struct {
		Parameters []struct{ Name, In string }
	}
	Components struct {
		Schemas map[string]struct {
			Properties map[string]json.RawMessage
			Required   []string
		}
	}
}

func readOpenAPI(t *testing.T, s *queryapi.Server) (doc openAPI) {
	t.Helper()
	answer := httptest.NewRecorder()
	s.Handler().ServeHTTP(answer, request("", "/openapi.json", nil))
	if err := json.Unmarshal(answer.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// Each path of the document is served with each of its parameters, and nothing beside them is.
func TestOpenAPINamesWhatIsServed(t *testing.T) {
	s := newServer(t, sampleNode(), observed, func(o *queryapi.Options) { o.Logs = fakeLogs{"uid-web": nil} })
	doc := readOpenAPI(t, s)
	want := []string{"/apis/v1/alerts", "/apis/v1/audit", "/apis/v1/guard", "/apis/v1/guard/maintenance", "/apis/v1/load", "/apis/v1/node", "/apis/v1/pods", "/apis/v1/pods/{namespace}/{name}", "/apis/v1/pods/{namespace}/{name}/log",
		"/apis/v1/silences", "/apis/v1/silences/{id}", "/apis/v1/watch", "/openapi.json", "/pods"}
	if got := slices.Sorted(maps.Keys(doc.Paths)); !slices.Equal(got, want) {
		t.Errorf("got paths %v, want %v", got, want)
	}
	values := map[string]string{"namespace": "default", "state": "Ready", "gone": "true", "since": "e1-0", "pod": "default/web", "container": "main", "previous": "false"}
	for path, operations := range doc.Paths {
		if _, read := operations["get"]; !read {
			continue
		}
		target := strings.NewReplacer("{namespace}", "default", "{name}", "web").Replace(path)
		var query []string
		for _, p := range operations["get"].Parameters {
			if p.In == "query" {
				query = append(query, p.Name+"="+values[p.Name])
			}
		}
		answer := httptest.NewRecorder()
		s.Handler().ServeHTTP(answer, overSocket(request(http.MethodHead, target+"?"+strings.Join(query, "&"), nil)))
		if answer.Code != http.StatusOK {
			t.Errorf("%s?%s: got %d %s", target, strings.Join(query, "&"), answer.Code, answer.Body)
		}
	}
}

// documented are values of the types that have a schema of their name.
var documented = []any{
	view.PodList{}, view.PodSummary{}, view.PodDetail{}, view.ContainerLog{}, view.ContainerDetail{}, view.ProbeDetail{}, view.NodeDetail{}, view.NodeDelivery{},
	view.Freshness{}, view.Record{}, view.GonePod{}, explain.Explanation{}, explain.Cause{}, explain.Next{},
	queryapi.AlertList{}, alert.Alert{}, alert.Action{}, queryapi.SilenceList{}, alert.Silence{}, alert.Matcher{},
	audit.Difference{}, audit.Evidence{}, audit.Ref{}, audit.Answer{}, audit.Propagation{}, audit.Picture{}, audit.PictureContainer{},
	guard.Reason{}, guard.Restart{}, guard.Item{},
	load.Load{}, load.LoadPart{}, load.CPULoad{}, load.MemoryLoad{}, load.DiskLoad{}, load.Count{}, load.Pressure{}, load.NetworkLoad{}, load.PodLoad{},
}

// The schemas have the fields that the encoder writes, no more and no fewer.
func TestOpenAPIHasTheFieldsOfTheTypes(t *testing.T) {
	doc := readOpenAPI(t, newServer(t, sampleNode()))
	for name, value := range map[string]any{
		"AuditReport": audit.Report{}, "GuardReport": guard.Report{}, "LogReport": logs.Report{}, "LogSource": logs.Source{}, "LogCondition": logs.Condition{},
		"LogProblem": logs.Problem{}, "LogVictim": logs.Victim{},
	} {
		checkSchema(t, doc, name, value)
	}
	for _, value := range documented {
		checkSchema(t, doc, reflect.TypeOf(value).Name(), value)
	}
}

// checkSchema compares a schema with what the encoder writes of a full and of an empty value.
func checkSchema(t *testing.T, doc openAPI, name string, value any) {
	t.Helper()
	full := reflect.New(reflect.TypeOf(value)).Elem()
	fill(full, 0)
	written := keys(t, full.Interface())
	if got := slices.Sorted(maps.Keys(doc.Components.Schemas[name].Properties)); !slices.Equal(got, written) {
		t.Errorf("%s: the document has %v, the encoder writes %v", name, got, written)
	}
	required := slices.Sorted(slices.Values(doc.Components.Schemas[name].Required))
	if empty := keys(t, value); !slices.Equal(required, empty) {
		t.Errorf("%s: the document requires %v, the encoder always writes %v", name, required, empty)
	}
}

func keys(t *testing.T, value any) []string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(object))
}

// fill makes a value without an empty field.
func fill(v reflect.Value, depth int) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(noon))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.Zero(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && depth < 2 {
				fill(v.Field(i), depth+1)
			}
		}
	}
}
