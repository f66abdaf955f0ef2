package kubeletapi

import (
	"net/url"
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

func TestWhichAttemptOfAContainerIsLogged(t *testing.T) {
	waiting := func(reason string) v1.ContainerState {
		return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}
	}
	terminated := func(id string) v1.ContainerState {
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: id}}
	}
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	for _, c := range []struct {
		name        string
		state, last v1.ContainerState
		previous    bool
		want, err   string
	}{
		{name: "running", state: running, want: "now"},
		{name: "running, previous", state: running, last: terminated("before"), previous: true, want: "before"},
		{name: "running for the first time, previous", state: running, previous: true, err: `previous terminated container "c" in pod "p" not found`},
		{name: "previous without an ID", state: running, last: terminated(""), previous: true, err: `previous terminated container "c" in pod "p" not found`},
		{name: "terminated", state: terminated("this"), last: terminated("before"), want: "this"},
		{name: "the next one did not start", state: terminated(""), last: terminated("before"), want: "before"},
		{name: "terminated without an ID", state: terminated(""), err: `container "c" in pod "p" is terminated`},
		{name: "waiting to start again", state: waiting("CrashLoopBackOff"), last: terminated("before"), want: "before"},
		{name: "waiting, terminated without an ID", state: waiting("CrashLoopBackOff"), last: terminated(""), err: `container "c" in pod "p" is terminated`},
		{name: "waiting", state: waiting("ContainerCreating"), err: `container "c" in pod "p" is waiting to start: ContainerCreating`},
		{name: "image", state: waiting("ErrImagePull"), err: `container "c" in pod "p" is waiting to start: image can't be pulled`},
		{name: "image again", state: waiting("ImagePullBackOff"), err: `container "c" in pod "p" is waiting to start: trying and failing to pull image`},
		{name: "nothing", err: `container "c" in pod "p" is waiting to start - no logs yet`},
	} {
		for _, kind := range []func(*v1.PodStatus) *[]v1.ContainerStatus{
			func(s *v1.PodStatus) *[]v1.ContainerStatus { return &s.ContainerStatuses },
			func(s *v1.PodStatus) *[]v1.ContainerStatus { return &s.InitContainerStatuses },
			func(s *v1.PodStatus) *[]v1.ContainerStatus { return &s.EphemeralContainerStatuses },
		} {
			var status v1.PodStatus
			*kind(&status) = []v1.ContainerStatus{{Name: "c", ContainerID: "now", State: c.state, LastTerminationState: c.last}}
			got, err := loggedContainer("p", &status, "c", c.previous)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != c.want || text != c.err {
				t.Errorf("%s: got %q, %q; want %q, %q", c.name, got, text, c.want, c.err)
			}
		}
	}
	if _, err := loggedContainer("p", &v1.PodStatus{}, "c", false); err == nil || err.Error() != `container "c" in pod "p" is not available` {
		t.Errorf("a container without a status: %v", err)
	}
}

func TestTheQueryOfALogIsReadAsTheAPIDoes(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	number := func(n int64) *int64 { return &n }
	for query, want := range map[string]*runtime.LogOptions{
		"":                                 {},
		"follow=true":                      {Follow: true},
		"follow":                           {Follow: true},
		"follow=false":                     {},
		"follow=0":                         {},
		"timestamps=1&tail=all":            {Timestamps: true},
		"tailLines=0":                      {Tail: number(0)},
		"tail=7":                           {Tail: number(7)},
		"sinceSeconds=60":                  {Since: now.Add(-time.Minute)},
		"sinceSeconds=9223372036854775807": {Since: now.Add(-maxSinceSeconds * time.Second)},
		"sinceTime=2026-01-01T00:00:00Z":   {Since: now.Add(-24 * time.Hour)},
		"limitBytes=5":                     {LimitBytes: 5},
		"stream=Stderr":                    {Stream: runtime.Stderr},
		"stream=Stdout":                    {Stream: runtime.Stdout},
		"stream=All&tailLines=1":           {Tail: number(1)},
		"tailLines=x":                      nil,
		"tailLines=-1":                     nil,
		"limitBytes=0":                     nil,
		"sinceTime=noon":                   nil,
		"sinceSeconds=0":                   nil,
		"sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z": nil,
		"stream=stderr":             nil,
		"stream=Stderr&tailLines=1": nil,
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := decodeLogOptions(values)
		ok := err == nil && validLogOptions(decoded)
		if ok != (want != nil) {
			t.Errorf("%q: taken %t, %v", query, ok, err)
			continue
		}
		if want == nil {
			continue
		}
		got := logOptions(decoded, now)
		if !got.Since.Equal(want.Since) {
			t.Errorf("%q: got since %v, want %v", query, got.Since, want.Since)
		}
		got.Since, want.Since = time.Time{}, time.Time{}
		if !reflect.DeepEqual(got, *want) {
			t.Errorf("%q: got %+v, want %+v", query, got, *want)
		}
	}
}
