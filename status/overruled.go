package status

import (
	"encoding/json"
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// decision is what the API server has made of a version: it has stored something else than
// was sent, and does so again when it is sent again. A server that lacks a field, a feature
// gate that is off, or a webhook decides so. The answer then counts as what was sent, until
// the API's pod or the version changes.
type decision struct {
	version uint64
	// couldRun distinguishes the write with a terminal phase from the one before, without it.
	couldRun bool
	status   *v1.PodStatus // the answer; never changed
}

// mergedKeys are the fields of a status of which a patch sends parts. If the answer differs in
// one of them, the base may have been old.
var mergedKeys = map[string]bool{
	"conditions": true, "podIPs": true, "hostIPs": true, "resources": true, "allocatedResources": true,
}

// overruled reports whether the answer to a write, which differs from what was written, is the
// server's decision: each field that differs was sent whole; or the write has changed nothing
// of what this node owns.
func (t *turn) overruled(p *plan, patch []byte, answer base, merged *v1.PodStatus) bool {
	left, err := t.m.owns.Patch(p.target, answer.status, merged)
	if err != nil {
		return false
	}
	sent, differing := keysOf(patch), keysOf(left)
	if len(differing) == 0 {
		return false
	}
	whole := true
	for key := range differing {
		whole = whole && sent[key] && !mergedKeys[key]
	}
	return whole || !t.m.owns.NeedsReconcile(p.pod, answer.status, p.base.status)
}

// keysOf returns the fields of the status that a patch mentions.
func keysOf(patch []byte) map[string]bool {
	var body struct {
		Status map[string]json.RawMessage `json:"status"`
	}
	if json.Unmarshal(patch, &body) != nil {
		return nil
	}
	keys := make(map[string]bool, len(body.Status))
	for key := range maps.Keys(body.Status) {
		if directive, field, ok := strings.Cut(key, "/"); ok && strings.HasPrefix(directive, "$") {
			key = field
		}
		keys[key] = true
	}
	return keys
}

func (d decision) covers(version uint64) bool { return d.status != nil && d.version == version }

// recordDecision records what the server has made of the version.
func (m *Manager) recordDecision(p *plan, answer base, couldRun bool) {
	m.metrics.overruled.Inc()
	m.opts.Logger.Info("API server stored another status than was sent; its answer stands", "pod", p.podName(), "uid", p.target, "version", p.version)
	m.cache.setDecision(p.uid, decision{version: p.version, couldRun: couldRun, status: answer.status})
}
