package kubeletapi_test

import (
	"os"
	"strings"
	"testing"

	"github.com/statusd/statusd/test/doors"
)

// What the comparison relies on: the recording has refusals of each kind, and every path has been refused to clients
// without credentials, but for paths that do not exist and redirects.
func TestTheRecordingOfTheKubeletRefuses(t *testing.T) {
	recorded, err := os.ReadFile("testdata/doors.txt")
	if err != nil {
		t.Fatal(err)
	}
	answers, err := doors.Read(string(recorded))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[int]int{}
	for _, a := range answers {
		kinds[a.Status]++
		if a.Client == "no-credentials" && a.Status != 401 && !strings.HasPrefix(a.Body, "404 page not found") && a.Status != 307 {
			t.Errorf("%s without credentials: %d %q", a.Request, a.Status, a.Body)
		}
	}
	for _, status := range []int{200, 401, 403} {
		if kinds[status] < 50 {
			t.Errorf("%d answers with status %d", kinds[status], status)
		}
	}
}
