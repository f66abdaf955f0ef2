package run

import (
	"encoding/json"
	"net/http"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// Two agents share nothing: each has its node, its pods, its metrics and its log.
func TestTwoNodesInOneProcess(t *testing.T) {
	first, stopFirst := started(t, testConfig(t, "first"))
	second, _ := started(t, testConfig(t, "second"))
	awaitReady(t, first, "sleeper-first")
	awaitReady(t, second, "sleeper-second")
	stopFirst()
	code, body := get(t, second, "/pods")
	var list v1.PodList
	if err := json.Unmarshal([]byte(body), &list); err != nil || code != http.StatusOK {
		t.Fatalf("got %d %s (%v)", code, body, err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != "sleeper-second" || !isReady(&list.Items[0].Status) {
		t.Errorf("got %v, want the one pod of the second agent, ready", list.Items)
	}
	if list.Items[0].Spec.Containers[0].Command != nil {
		t.Errorf("the command of a container is shown: %v", list.Items[0].Spec)
	}
}
