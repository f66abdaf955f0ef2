package judge

import (
	"fmt"
	"time"

	"github.com/statusd/statusd/test/robustness/record"
)

// callFor is how long a call of the manager may take: longer than any fault.
const callFor = time.Minute

// calls checks that each call returns, unless its process was ended, and that it stores what was reported unless the pod is gone, and that no process
// ends by itself.
func calls(history []record.Record) (found []Violation) {
	if len(history) == 0 {
		return nil
	}
	open, gone := map[int64]*record.Record{}, map[string]bool{}
	for i := range history {
		r := &history[i]
		switch r.Kind {
		case record.Call:
			open[r.ID] = r
		case record.Return:
			if call := open[r.ID]; call != nil && time.Duration(r.At-call.At) > callFor {
				found = append(found, violation(call, "%s of %s took %s", call.Verb, call.Name, time.Duration(r.At-call.At).Round(time.Second)))
			}
			if r.Err != "" && !r.Warning && !gone[r.UID] {
				found = append(found, violation(r, "%s of %s: %s", r.Verb, r.Name, r.Err))
			}
			delete(open, r.ID)
		case record.Gone:
			gone[r.UID] = true
		case record.Ended:
			if r.Err != "" {
				found = append(found, Violation{At: r.At, Text: fmt.Sprintf("process %d of the agent %s", r.Agent, r.Err)})
			}
			for id, call := range open {
				if call.Agent == r.Agent {
					delete(open, id)
				}
			}
		}
	}
	end := history[len(history)-1].At
	for _, call := range open {
		if time.Duration(end-call.At) > callFor {
			found = append(found, violation(call, "%s of %s has not returned after %s", call.Verb, call.Name, time.Duration(end-call.At).Round(time.Second)))
		}
	}
	return found
}

// growth is how much more than at the first look each measure may be: a factor, and a number that is added.
var growth = map[string]struct{ factor, more int64 }{
	"goroutines":  {1, 60},
	"descriptors": {1, 20},
	"heapKiB":     {2, 16 << 10},
	"journalKiB":  {2, 8 << 10},
}

// resources compares each look in a calm with the first one.
func resources(history []record.Record) (found []Violation) {
	var first *record.Record
	for i := range history {
		r := &history[i]
		if r.Kind != record.Look || r.Measures == nil { // not in a calm
			continue
		}
		if first == nil {
			first = r
		}
		for name, bound := range growth {
			if has, most := r.Measures[name], bound.factor*first.Measures[name]+bound.more; has > most {
				found = append(found, Violation{At: r.At, Text: fmt.Sprintf("%s: %d, and %d at first", name, has, first.Measures[name])})
			}
		}
	}
	return found
}
