package machine

import (
	"slices"
	"testing"

	"github.com/statusd/statusd/internal/machine/logs"
)

// Files of logs are those of the host.
func TestConfig_LogFilesAreBelowTheRootOfTheHost(t *testing.T) {
	c := Config{LogFiles: map[string]string{"/var/log/kubelet.log": "kubelet"}}
	got, err := c.logs("/host", t.TempDir())
	if err != nil || got.Files["/host/var/log/kubelet.log"] != logs.KubeletLog {
		t.Errorf("got %v, %v", got.Files, err)
	}
}

// Logs that are asked for and cannot be read are named; logs that are not asked for are not.
func TestConfig_MissingLogsAreNamed(t *testing.T) {
	asked := Config{Units: map[string]string{"kubelet.service": "kubelet", "containerd.service": "runtime"}}
	if got := asked.missing(logs.Options{}); !slices.Equal(got, []string{"kernel", "containerd.service", "kubelet.service"}) {
		t.Errorf("got %v", got)
	}
	if got := asked.missing(logs.Options{Kmsg: "/dev/kmsg", Units: origins("", asked.Units)}); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	if got := (&Config{NoKernelLog: true}).missing(logs.Options{}); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
