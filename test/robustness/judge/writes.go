package judge

import (
	"net/http"
	"slices"
	"time"

	"github.com/statusd/statusd/test/robustness/record"
)

// repeated is how soon after the answer to a DELETE another one is answered that was sent before: the agent has not got the first answer. The
// server answers both as done.
const repeated = 10 * time.Second

// rightPod checks the writes to a pod.
func rightPod(records []record.Record) (found []Violation) {
	name, terminated, wanted, deleted := "", false, false, int64(0)
	for i := range records {
		r := &records[i]
		switch {
		case isRestore(r):
			deleted = 0
		case r.Kind == record.Version, r.Kind == record.Created:
			name = r.Name
			wanted = wanted || r.Facts != nil && r.Facts.Deleting
		case r.Kind == record.Remove:
			wanted = true
		case r.Kind == record.Call && r.Verb == record.Terminate:
			terminated = true
		case r.Kind != record.Request || r.Verb != http.MethodPatch && r.Verb != http.MethodDelete:
		case r.UID == "":
			found = append(found, Violation{At: r.At, Text: "a " + r.Verb + " to " + r.Name + " names no UID"})
		case name != "" && name != r.Name:
			found = append(found, violation(r, "a %s to %s names the UID of %s", r.Verb, r.Name, name))
		case r.Verb == http.MethodDelete && !terminated:
			found = append(found, violation(r, "%s was deleted before it was terminated", r.Name))
		case r.Verb == http.MethodDelete && !wanted:
			found = append(found, violation(r, "%s was deleted, and its deletion was not requested", r.Name))
		case r.Verb == http.MethodDelete && r.Code == http.StatusOK:
			if deleted > 0 {
				v := violation(r, "%s was deleted twice", r.Name)
				if time.Duration(r.At-deleted) <= repeated {
					v.Excuse = lostAnswer
				}
				found = append(found, v)
			}
			deleted = r.At
		}
	}
	return found
}

// ownFields checks the condition of another writer: it has a number that this writer has written, none before the last one that the server
// has accepted.
func ownFields(records []record.Record) (found []Violation) {
	written := map[int]bool{}
	accepted := map[uint64]int{} // numbers by version of the API
	last := 0
	for i := range records {
		r := &records[i]
		switch {
		case isRestore(r):
			last = 0
			clear(accepted)
		case r.Kind == record.Foreign:
			written[r.Facts.Gate] = true
			if r.RV > 0 {
				accepted[r.RV] = r.Facts.Gate
			}
		case r.Kind != record.Version:
		case r.Facts.Gate < last:
			found = append(found, violation(r, "%s has the foreign condition with %d in version %d of the API, after %d", r.Name, r.Facts.Gate, r.RV, last))
		case r.Facts.Gate > 0 && !written[r.Facts.Gate]:
			found = append(found, violation(r, "%s has the foreign condition with %d, which its owner has not written", r.Name, r.Facts.Gate))
		default:
			last = r.Facts.Gate
			if want, ok := accepted[r.RV]; ok && want != last {
				v := violation(r, "%s has the foreign condition with %d in version %d of the API, its owner wrote %d", r.Name, last, r.RV, want)
				if ends(records[i:]) {
					v.Excuse = lastWrite
				}
				found = append(found, v)
			}
		}
	}
	return found
}

// ends reports whether the first record is the last version of a pod that is being deleted. A write that comes then deletes the pod, and is answered
// with what was to be written and with this version, which has it not.
func ends(records []record.Record) bool {
	if !records[0].Facts.Deleting {
		return false
	}
	next := slices.IndexFunc(records[1:], func(r record.Record) bool { return r.Kind == record.Version || r.Kind == record.Gone })
	return next >= 0 && records[1+next].Kind == record.Gone
}

// listFirst checks that each process lists the pods before it writes.
func listFirst(history []record.Record) (found []Violation) {
	listed := map[int]bool{}
	for i := range history {
		r := &history[i]
		switch {
		case r.Kind != record.Request:
		case r.Verb == "LIST" && r.Sent == http.StatusOK && r.Fault == "":
			listed[r.Agent] = true
		case (r.Verb == http.MethodPatch || r.Verb == http.MethodDelete) && !listed[r.Agent]:
			found = append(found, violation(r, "process %d of the agent sent a %s for %s before it had listed the pods", r.Agent, r.Verb, r.Name))
			listed[r.Agent] = true // once
		}
	}
	return found
}
