package process

import (
	"os/exec"
	"strings"
	"testing"
)

// Most of what a large program costs is what it imports.
func TestTheSmallShimImportsLittle(t *testing.T) {
	output, err := exec.Command("go", "list", "-deps", "github.com/statusd/statusd/cmd/statusd-shim").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(output)) {
		if name == "net" || strings.HasPrefix(name, "net/") || strings.HasPrefix(name, "k8s.io/") || strings.HasPrefix(name, "crypto/") {
			t.Errorf("the small shim imports %s", name)
		}
	}
}
