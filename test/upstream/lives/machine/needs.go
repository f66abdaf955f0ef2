package machine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/statusd/statusd/test/stock"
)

// needs says all that this machine lacks for a recording.
func needs(agent string) error {
	var missing []error
	if err := stock.Missing(); err != nil {
		missing = append(missing, err)
	}
	if _, err := exec.LookPath("dbus-daemon"); err != nil {
		missing = append(missing, fmt.Errorf("the program dbus-daemon is missing; Debian: apt-get install dbus"))
	}
	binaries := map[string]string{"kubelet": kubeletBinary(), "kubelet-statusd": kubeletStatusdBinary(), "doors": kubeletBinary(), "statusd": statusdBinary(), "statusd-cri": statusdBinary()}
	if file := binaries[agent]; file != "" {
		if _, err := os.Stat(file); err != nil {
			missing = append(missing, fmt.Errorf("%w; make lives builds it", err))
		}
	}
	found, err := stock.Groups(groupNames[agent])
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
