package journal

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

// childVariable names the role that a re-executed test binary plays instead of testing.
const childVariable = "JOURNAL_TEST_CHILD"

// children are the roles. Each gets the path of a journal and further arguments.
var children = map[string]func(args []string) error{
	"writers": writersChild,
	"holder":  holderChild,
}

func TestMain(m *testing.M) {
	if role := os.Getenv(childVariable); role != "" {
		if err := children[role](os.Args[1:]); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child prepares this test binary to run in a role.
func child(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), childVariable+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}
