package machineside

import (
	"path/filepath"
	"strings"

	"github.com/statusd/statusd/internal/audit"
)

// identity reads the machine's identity from the same files as a kubelet. Unreadable parts are unknown: a container sees only mounted files.
func identity(h *host, proc string) audit.Identity {
	const longest = 256
	read := func(path string) string {
		data, err := h.read(path, longest)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(data))
	}
	return audit.Identity{
		MachineID:  read(h.path("/etc/machine-id")),
		SystemUUID: read(h.path("/sys/class/dmi/id/product_uuid")),
		BootID:     read(filepath.Join(proc, "sys/kernel/random/boot_id")),
	}
}
