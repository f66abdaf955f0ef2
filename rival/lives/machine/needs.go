package machine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// needs says all that this machine lacks for a recording.
func needs(agent string) error {
	var missing []error
	if os.Geteuid() != 0 {
		missing = append(missing, errors.New("it must run as root: it makes namespaces, mounts and control groups"))
	}
	for _, program := range []struct{ name, hint string }{
		{"containerd", "apt-get install containerd"},
		{"ctr", "apt-get install containerd"},
		{"runc", "apt-get install runc"},
		{"busybox", "apt-get install busybox-static"},
		{"dbus-daemon", "apt-get install dbus"},
	} {
		if _, err := exec.LookPath(program.name); err != nil {
			missing = append(missing, fmt.Errorf("the program %s is missing; Debian: %s", program.name, program.hint))
		}
	}
	for _, file := range []string{kubeletBinary(), statusdBinary()} {
		if _, err := os.Stat(file); err != nil {
			missing = append(missing, fmt.Errorf("%w; make lives builds it", err))
		}
	}
	found, err := groups(agent)
	if err != nil {
		missing = append(missing, err)
	}
	for _, group := range found {
		missing = append(missing, fmt.Errorf("%s exists: a kubelet or another recording runs on this machine, or was killed and has left it", group))
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("this machine cannot record:\n%w", errors.Join(missing...))
}
