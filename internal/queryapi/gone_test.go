package queryapi_test

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/statusd/statusd/internal/view"
)

// A pod that the node does not know any more is gone, also in the moment before its history says so.
func TestWatch_UnknownPod_IsGone(t *testing.T) {
	node := sampleNode()
	ended := node.history["default/old"]
	ended.Gone = nil
	node.history["default/old"] = ended
	answer := httptest.NewRecorder()
	newServer(t, node).Handler().ServeHTTP(answer, request("", "/apis/v1/pods/default/old", nil))
	var detail view.PodDetail
	if err := json.Unmarshal(answer.Body.Bytes(), &detail); err != nil {
		t.Fatal(err)
	}
	if last := ended.Records[len(ended.Records)-1].Observed; detail.Gone == nil || !detail.Gone.Equal(last) {
		t.Errorf("gone at %v, want at %v, the last time that it was seen", detail.Gone, last)
	}
}
