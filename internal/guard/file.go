package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// memory is what the file has.
type memory struct {
	Version     int       `json:"version"`
	State       State     `json:"state"`
	Restarts    []Restart `json:"restarts,omitempty"`
	Would       []Restart `json:"would,omitempty"`
	Maintenance time.Time `json:"maintenance,omitzero"`
	// Annotated is what the annotation of the Node said last.
	Annotated Fact[Maintenance] `json:"annotated,omitzero"`
}

const (
	memoryVersion = 1
	maxMemory     = 4 << 20
)

// load reads the state file. If it is missing or damaged, the guard starts without its earlier
// state.
func (g *Guard) load() {
	if g.o.StateFile == "" {
		return
	}
	m, err := readMemory(g.o.StateFile)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			g.log.Warn("state of the guard not read: earlier restarts and maintenance are not known", "file", g.o.StateFile, "err", err)
		}
		return
	}
	g.state = m.State.resumed(time.Now())
	for _, r := range m.Restarts {
		if now := time.Now(); r.At.After(now) { // by a clock that was set back since; the budget still has it
			r.At = now
		}
		g.report.Restarts = append(g.report.Restarts, r)
	}
	g.report.Maintenance, g.report.Would, g.annotated = m.Maintenance, m.Would, m.Annotated
	if g.state.Health != "" {
		g.report.Health, g.report.Since = g.state.Health, g.state.Since
	}
}

func readMemory(path string) (m memory, err error) {
	file, err := os.Open(path)
	if err != nil {
		return m, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxMemory))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return memory{}, err
	}
	if m.Version != memoryVersion {
		return memory{}, fmt.Errorf("version %d", m.Version)
	}
	return m, nil
}

// resumed is the state after a pause without looks: only established signs are kept, and the API server
// counts as not having answered during the pause.
func (s State) resumed(now time.Time) State {
	s = s.clone()
	s.setBack(now)
	s.Looked = now
	s.APISince = time.Time{}
	for code, sign := range s.Signs {
		if _, exists := rules[code]; !exists || !sign.established(rules[code]) || now.Sub(sign.Last) > forget {
			delete(s.Signs, code)
		}
	}
	return s
}

// store saves, for callers that continue after a failure.
func (g *Guard) store() { _ = g.save() }

func (g *Guard) storeFailed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.storeErr != ""
}

// save writes the file, and waits for it no longer than saveTimeout. A failure is logged when it begins.
func (g *Guard) save() error {
	if g.o.StateFile == "" {
		return nil
	}
	limited, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	err := g.saving.Do(limited, func() error {
		g.mu.Lock()
		m := memory{Version: memoryVersion, State: g.state.clone(), Restarts: g.report.Restarts, Would: g.report.Would, Maintenance: g.report.Maintenance, Annotated: g.annotated}
		g.mu.Unlock()
		data, err := json.Marshal(m)
		if err != nil {
			return err
		}
		return g.write(g.o.StateFile, data)
	})
	text := ""
	if err != nil {
		text = err.Error()
		err = fmt.Errorf("guard: state not stored in %s, a restart of statusd forgets it: %w", g.o.StateFile, err)
	}
	g.mu.Lock()
	before := g.storeErr
	g.storeErr = text
	g.mu.Unlock()
	if text != "" && before == "" {
		g.log.Warn("state of the guard not stored, further failures are not logged", "file", g.o.StateFile, "err", err)
	}
	return err
}
