package observer

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/wholefile"
)

// saved is the state that survives a restart in addition to the history: the auditor's measurements, and the
// current differences, so that the next observer does not announce them again.
type saved struct {
	Auditor     json.RawMessage    `json:"auditor"`
	Differences []audit.Difference `json:"differences"`
}

// restore reads what the last observer has saved, nothing if it cannot be read.
func (o *Observer) restore() (s saved) {
	data, err := os.ReadFile(filepath.Join(o.config.StateDir, auditFile))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.log.Warn("audit state of the last run not read, starting without it", "err", err)
		return saved{}
	}
	return s
}

// save writes the state. If it fails, the next observer must measure again for a while.
func (o *Observer) save() {
	path := filepath.Join(o.config.StateDir, auditFile)
	data, err := json.Marshal(saved{Auditor: o.auditor.State(), Differences: o.view.Load().report.Differences})
	if err == nil {
		err = wholefile.Write(path, data)
	}
	if err != nil {
		o.log.Warn("saving the audit state failed", "err", err)
	}
}
