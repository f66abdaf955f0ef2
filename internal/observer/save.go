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

// saved is what survives a restart beside the history: what the auditor has measured, and the differences that
// there were, so that the next observer does not announce them again.
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
		o.log.Warn("what earlier audits have measured is lost", "err", err)
		return saved{}
	}
	return s
}

// save writes it. That it cannot be written costs the next observer a while to measure again.
func (o *Observer) save() {
	path := filepath.Join(o.config.StateDir, auditFile)
	data, err := json.Marshal(saved{Auditor: o.auditor.State(), Differences: o.view.Load().report.Differences})
	if err == nil {
		err = wholefile.Write(path, data)
	}
	if err != nil {
		o.log.Warn("what audits have measured cannot be written", "err", err)
	}
}
