package machineside

import (
	"path/filepath"
	"strings"

	"github.com/statusd/statusd/internal/audit"
)

// identity reads what the machine calls itself, where a kubelet reads it. What cannot be read is not known: a container sees the files that are
// mounted.
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
