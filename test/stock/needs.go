package stock

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/statusd/statusd/test/patience"
)

// Missing is all that this machine lacks for a node; nil if nothing.
func Missing() error {
	var missing []error
	if os.Geteuid() != 0 {
		missing = append(missing, errors.New("it must run as root: it makes namespaces, mounts and control groups"))
	}
	for _, program := range []struct{ name, hint string }{
		{"containerd", "apt-get install containerd"},
		{"ctr", "apt-get install containerd"},
		{"runc", "apt-get install runc"},
		{"busybox", "apt-get install busybox-static"},
	} {
		if _, err := exec.LookPath(program.name); err != nil {
			missing = append(missing, fmt.Errorf("the program %s is missing; Debian: %s", program.name, program.hint))
		}
	}
	if err := staticBusybox(); err != nil {
		missing = append(missing, err)
	}
	if os.Geteuid() == 0 {
		missing = append(missing, groupsWritable())
	}
	return errors.Join(missing...)
}

// staticBusybox reports whether busybox runs in an image that has no libraries.
func staticBusybox() error {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return nil // said by Missing
	}
	program, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer program.Close()
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s needs libraries; Debian: apt-get install busybox-static", path)
		}
	}
	return nil
}

// Context ends with the test, or shortly before the time limit of the test run: waits then report the missing state, and the
// node is removed.
func Context(t *testing.T) context.Context {
	ctx, cancel := patience.Context(t)
	t.Cleanup(cancel)
	return ctx
}

// Need skips the test if this machine cannot run a node, with a line that says why. Root on a machine
// with apt-get can install everything: there, a missing part fails the test, unless the kernel refuses
// it.
func Need(t testing.TB) {
	t.Helper()
	err := Missing()
	if err == nil {
		return
	}
	_, apt := exec.LookPath("apt-get")
	if os.Geteuid() == 0 && apt == nil && !errors.Is(err, errGroups) {
		t.Fatalf("no node of the stock kubelet on this machine; .ci/packages installs what is missing: %v", err)
	}
	t.Skipf("no node of the stock kubelet on this machine: %v", err)
}
