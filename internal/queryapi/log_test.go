package queryapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/view"
)

// fakeLogs has the logs of one container of each pod.
type fakeLogs map[types.UID][]string

func (l fakeLogs) Log(_ context.Context, uid types.UID, container string, previous bool) ([]string, error) {
	lines, ok := l[uid]
	switch {
	case container == "stuck":
		return nil, errors.New("the disk hangs")
	case !ok || container != "main" || previous:
		return nil, view.ErrNoLog
	}
	return lines, nil
}

// The log of a container is served to its owner, by GET, with parameters that are checked. Other users of the machine, such as those
// of other pods, see everything else.
func TestLog_IsServedToItsOwner(t *testing.T) {
	server := newServer(t, sampleNode(), func(o *queryapi.Options) { o.Logs = fakeLogs{"uid-web": {"ready", "<b>bold</b>"}} })
	for _, test := range []struct {
		target, host string
		code         int
		want         string
	}{
		{"/apis/v1/pods/default/web/log?container=main", "localhost", http.StatusOK, ""},
		{"/apis/v1/pods/default/web/log?container=main&previous=true", "localhost", http.StatusNotFound, "has no such log"},
		{"/apis/v1/pods/default/web/log?container=other", "localhost", http.StatusNotFound, "has no such log"},
		{"/apis/v1/pods/default/web/log?container=stuck", "localhost", http.StatusServiceUnavailable, "cannot be read now"},
		{"/apis/v1/pods/default/nothing/log?container=main", "localhost", http.StatusNotFound, "neither on this node"},
		{"/apis/v1/pods/default/old/log?container=main", "localhost", http.StatusNotFound, "neither on this node"},
		{"/apis/v1/pods/default/web/log", "localhost", http.StatusBadRequest, "container"},
		{"/apis/v1/pods/default/web/log?container=..%2f..", "localhost", http.StatusBadRequest, "container"},
		{"/apis/v1/pods/default/web/log?container=main&previous=maybe", "localhost", http.StatusBadRequest, "previous"},
		{"/apis/v1/pods/default/web/log?container=main&follow=true", "localhost", http.StatusBadRequest, "follow"},
		{"/apis/v1/pods/default/web/log?container=main", "evil.example", http.StatusForbidden, ""},
		{"/apis/v1/pods/default/web/log?container=main", "127.0.0.1", http.StatusForbidden, "kubectl logs"},
	} {
		request := httptest.NewRequest(http.MethodGet, test.target, nil)
		request.Host, request.RemoteAddr = test.host, "127.0.0.1:1"
		if test.host == "localhost" {
			request = overSocket(request)
		}
		recorder := httptest.NewRecorder()
		server.Handler().ServeHTTP(recorder, request)
		if recorder.Code != test.code || !strings.Contains(recorder.Body.String(), test.want) {
			t.Errorf("%s of %s: %d %s, want %d with %q", test.target, test.host, recorder.Code, recorder.Body, test.code, test.want)
		}
		if test.code != http.StatusOK {
			continue
		}
		var log view.ContainerLog
		if err := json.Unmarshal(recorder.Body.Bytes(), &log); err != nil || log.Container != "main" || strings.Join(log.Lines, "|") != "ready|<b>bold</b>" {
			t.Errorf("got %+v (%v)", log, err)
		}
		if strings.Contains(recorder.Body.String(), "<b>") {
			t.Errorf("HTML is in the answer as it was written: %s", recorder.Body)
		}
	}
}

// A process that does not have the logs says so, and the page does not offer them.
func TestLog_IsNotOfferedWhereThereIsNone(t *testing.T) {
	for _, served := range []bool{true, false} {
		server := newServer(t, sampleNode(), func(o *queryapi.Options) {
			if served {
				o.Logs = fakeLogs{}
			}
		})
		request := httptest.NewRequest(http.MethodGet, "/apis/v1/pods/default/web", nil)
		request.Host, request.RemoteAddr = "localhost", "127.0.0.1:1"
		recorder := httptest.NewRecorder()
		server.Handler().ServeHTTP(recorder, request)
		var detail view.PodDetail
		if err := json.Unmarshal(recorder.Body.Bytes(), &detail); err != nil || detail.LogsServed != served {
			t.Errorf("logs are offered: %t (%v), want %t", detail.LogsServed, err, served)
		}
	}
}
