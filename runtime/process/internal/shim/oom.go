package shim

import (
	"bytes"
	"os"
	"strconv"
)

const oomScoreFile = "/proc/self/oom_score_adj"

// withoutOOMProtection calls start while this process has none of the protection from the
// kernel's out-of-memory killer that a service manager gave to statusd, and that a process
// inherits: it is for statusd and its shims, not for containers.
func withoutOOMProtection(start func()) {
	data, err := os.ReadFile(oomScoreFile)
	own, parseErr := strconv.Atoi(string(bytes.TrimSpace(data)))
	if err != nil || parseErr != nil || own >= 0 {
		start()
		return
	}
	if err := os.WriteFile(oomScoreFile, []byte("0"), 0); err != nil {
		complain("taking protection from the out-of-memory killer away from the container", err)
	}
	start()
	if err := os.WriteFile(oomScoreFile, []byte(strconv.Itoa(own)), 0); err != nil {
		complain("protecting the shim from the out-of-memory killer again", err)
	}
}
