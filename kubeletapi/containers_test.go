package kubeletapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/kubeletapi"
	"github.com/statusd/statusd/runtime"
)

// A program without a runtime serves what it can by functions; a client of anything else is told so.
func TestContainers_ServeWithoutARuntime(t *testing.T) {
	pod := webPod(t, newFakeRuntime())
	name := pod.Spec.Containers[0].Name
	pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: name, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}} // without an ID
	containers := &kubeletapi.Containers{
		Logs: func(_ context.Context, pod *v1.Pod, container string, o v1.PodLogOptions) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(fmt.Sprintf("%s of %s, previous %t, tail %d", container, pod.Name, o.Previous, *o.TailLines))), nil
		},
		Exec: func(_ context.Context, pod *v1.Pod, container string, command []string, s runtime.Streams) (int, error) {
			fmt.Fprint(s.Stdout, container, " ran ", strings.Join(command, " "))
			return 0, nil
		},
	}
	server := startAlone(t, kubeletapi.Options{Pods: &fakePods{pods: []*v1.Pod{pod}}, Containers: containers})
	where := pod.Namespace + "/" + pod.Name + "/" + name
	wantLog := fmt.Sprintf("%s of %s, previous true, tail 3", name, pod.Name)
	if code, body := server.get(t, "/containerLogs/"+where+"?previous=true&tailLines=3"); code != http.StatusOK || body != wantLog {
		t.Errorf("logs: %d %q, want %q", code, body, wantLog)
	}
	answer, err := server.http(t).Post("https://"+server.address+"/run/"+where+"?cmd=date", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, _ := io.ReadAll(answer.Body); string(body) != name+" ran date" {
		t.Errorf("run: %s %q", answer.Status, body)
	}
	containers.Logs = nil
	if code, body := server.get(t, "/containerLogs/"+where); code != http.StatusBadRequest || !strings.Contains(body, kubeletapi.ErrNotSupported.Error()) {
		t.Errorf("logs that are not there: %d %q", code, body)
	}
}
