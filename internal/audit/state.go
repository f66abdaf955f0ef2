package audit

import (
	"encoding/json"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// stateVersion is the version of the format; other versions are not read.
const stateVersion = 1

// memory is what an auditor remembers.
type memory struct {
	Version int       `json:"version"`
	Last    time.Time `json:"last"`
	// Counted is the time that the auditor has seen pass.
	Counted time.Duration `json:"counted"`
	// SetBack is until when the clock counts as set back.
	SetBack time.Duration `json:"setBack,omitempty"`
	// Renewed is the renewal of the lease that was seen last, RenewedAt when it was first seen.
	Renewed   time.Time          `json:"renewed,omitzero"`
	RenewedAt time.Duration      `json:"renewedAt,omitempty"`
	Samples   map[Side]*samples  `json:"samples"`
	Changes   map[string]*change `json:"changes,omitempty"`
	// Entries is entries as it is saved.
	Entries []*entry `json:"entries,omitempty"`
	// Known are the containers of the last look, if there was one.
	Known  map[string]ContainerState `json:"-"`
	Looked bool                      `json:"-"`
	// Graces are the grace periods of the pods that were seen last.
	Graces  map[types.UID]time.Duration `json:"graces,omitempty"`
	entries map[key]*entry
}

func restore(saved []byte) memory {
	m := memory{}
	if json.Unmarshal(saved, &m) != nil || m.Version != stateVersion {
		m = memory{Version: stateVersion}
	}
	if m.Samples == nil {
		m.Samples = map[Side]*samples{}
	}
	if m.Changes == nil {
		m.Changes = map[string]*change{}
	}
	if m.Graces == nil {
		m.Graces = map[types.UID]time.Duration{}
	}
	maps.DeleteFunc(m.Changes, func(_ string, c *change) bool { return c == nil })
	m.entries = map[key]*entry{}
	for _, e := range m.Entries {
		if e == nil {
			continue
		}
		if e.Answered == nil || e.Answers == nil {
			e.Answered, e.Answers = map[Side]time.Duration{}, map[Side]time.Time{}
		}
		m.entries[keyOf(&e.Difference)] = e
	}
	m.Entries = nil
	return m
}

// State returns the auditor's state, for [AuditorOptions].
func (a *Auditor) State() []byte {
	m := a.state
	for _, e := range m.entries {
		m.Entries = append(m.Entries, e)
	}
	out, err := json.Marshal(m)
	if err != nil {
		return nil // it is made of plain values
	}
	return out
}

// rememberGraces keeps the grace period of each existing pod, and of each deleted pod that has
// remains on the node: graceOf is called when the pod is gone.
func (m *memory) rememberGraces(w *world) {
	before := m.Graces
	m.Graces = map[types.UID]time.Duration{}
	for _, p := range w.pods {
		if pod := p.pod(); pod != nil {
			m.Graces[p.nodeUID] = grace(pod)
		} else if g, known := before[p.nodeUID]; known {
			m.Graces[p.nodeUID] = g
		}
	}
}

// graceOf is how long the containers of a pod that is gone may take to stop.
func (m *memory) graceOf(uid types.UID) time.Duration { return m.Graces[uid] }
