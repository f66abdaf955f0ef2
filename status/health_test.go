package status

import (
	"testing"

	"github.com/statusd/statusd/statustest"
)

// A proxy that has lost its server answers 404 for every pod. If that were the pods' fault, each pod would be tried on its own during the outage.
func TestFailureOf_AnswerOfAProxy_IsTheServersAbsence(t *testing.T) {
	r := statustest.Request{Verb: "PATCH"}
	if got := failureOf(statustest.NotFromServer(r)); got != away {
		t.Errorf("a 404 of a proxy: got %v, want %v", got, away)
	}
	if got := failureOf(statustest.NotFound(r)); got != refused {
		t.Errorf("a 404 of the server: got %v, want %v", got, refused)
	}
}
