package packaging

import (
	"os"
	"strings"
	"testing"
)

// What the unit must say for containers to outlive statusd and for an out-of-memory kill of one to
// concern only itself.
func TestUnitKeepsContainers(t *testing.T) {
	content, err := os.ReadFile("../../../deploy/packaging/statusd.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"Type=notify", "KillMode=process", "Delegate=yes", "OOMPolicy=continue", "Restart=always", "TimeoutStartSec=infinity"} {
		if !strings.Contains(string(content), "\n"+line+"\n") {
			t.Errorf("the unit does not say %s", line)
		}
	}
}
