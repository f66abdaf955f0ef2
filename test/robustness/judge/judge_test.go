package judge

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/test/robustness/record"
)

// at gives records times a second apart, from the first on.
func at(records ...record.Record) []record.Record {
	for i := range records {
		if records[i].At == 0 {
			records[i].At = int64(i+1) * int64(time.Second)
		}
		if records[i].UID == "" && records[i].Name != "" && records[i].Kind != record.Request {
			records[i].UID = records[i].Name + "-uid"
		}
	}
	record.Sort(records)
	return records
}

func call(id int64, verb string, facts record.Facts) record.Record {
	return record.Record{Kind: record.Call, Agent: 1, ID: id, Verb: verb, Name: "web", Facts: &facts}
}

func returned(id int64) record.Record {
	return record.Record{Kind: record.Return, Agent: 1, ID: id, Name: "web"}
}

func version(rv uint64, facts record.Facts) record.Record {
	return record.Record{Kind: record.Version, Name: "web", RV: rv, Facts: &facts}
}

// request is one of the agent's; a write may have made a version.
func request(verb string, uid string, code int, rv ...uint64) record.Record {
	r := record.Record{Kind: record.Request, Agent: 1, Verb: verb, Name: "web", UID: uid, Code: code, Sent: code}
	for _, r.RV = range rv {
	}
	return r
}

func running(number int) record.Facts { return record.Facts{Number: number, Phase: v1.PodRunning} }

func failed(number int) record.Facts { return record.Facts{Number: number, Phase: v1.PodFailed} }

// over is the answer that a pod has ended already.
func over(id int64) record.Record {
	r := returned(id)
	r.Err, r.Warning, r.Over = "status: phase Running", true, true
	return r
}

// ready is a running pod that is ready.
func ready(number int) record.Facts {
	return record.Facts{Number: number, Phase: v1.PodRunning, Ready: true}
}

var (
	remove   = record.Record{Kind: record.Remove, Name: "web"}
	list     = record.Record{Kind: record.Request, Agent: 1, Verb: "LIST", Code: 200, Sent: 200}
	restored = record.Record{Kind: record.Fault, Fault: record.Restored, Verb: record.End}
)

func later(r record.Record, d time.Duration) record.Record {
	r.At = int64(d)
	return r
}

func look(at time.Duration, flushed bool, pending ...string) record.Record {
	return record.Record{Kind: record.Look, Agent: 1, At: int64(at), Since: int64(at), Flushed: flushed, Pending: pending}
}

func TestJudge(t *testing.T) {
	want := record.Record{Kind: record.Want, Name: "web", Facts: &record.Facts{Number: 1, Phase: v1.PodRunning}, Within: 15 * time.Second}
	gone := record.Record{Kind: record.Gone, Name: "web"}
	foreign := func(rv uint64, gate int) record.Record {
		return record.Record{Kind: record.Foreign, Name: "web", RV: rv, Facts: &record.Facts{Gate: gate}}
	}
	measured := func(at time.Duration, goroutines int64) record.Record {
		r := look(at, true)
		r.Measures = map[string]int64{"goroutines": goroutines}
		return r
	}
	for _, c := range []struct {
		name    string
		history []record.Record
		want    []string // invariants
	}{
		{"reports are stored in order", at(call(1, record.Run, running(1)), version(1, running(1)), call(2, record.Run, running(2)), call(3, record.Run, running(3)), version(2, running(3))), nil},
		{"an older report after a newer one", at(call(1, record.Run, running(1)), call(2, record.Run, running(2)), version(1, running(2)), version(2, running(1))), []string{"monotonic"}},
		{"a report before it was made", at(version(1, running(1)), call(1, record.Run, running(1))), []string{"monotonic"}},
		{"a report that is lost again", at(call(1, record.Run, running(1)), version(1, running(1)), version(2, running(0))), []string{"monotonic"}},
		{"an older report after a restore", at(call(1, record.Run, running(1)), call(2, record.Run, running(2)), version(2, running(2)), restored, version(1, running(1)), version(2, running(2))), nil},
		{"an older report long after a restore", at(call(1, record.Run, running(1)), call(2, record.Run, running(2)), restored, version(2, running(2)), version(3, running(1))), []string{"monotonic"}},

		{"an end that was reported", at(call(1, record.Exit, failed(1)), version(1, failed(1)), version(2, failed(1))), nil},
		{"an end that is left", at(call(1, record.Exit, failed(1)), version(1, failed(1)), version(2, running(1))), []string{"final"}},
		{"an end before the containers have ended", at(call(1, record.Evict, failed(1)), version(1, failed(1))), []string{"final"}},
		{"an end that is ready", at(call(1, record.Exit, failed(1)), version(1, record.Facts{Number: 1, Phase: v1.PodFailed, Ready: true})), []string{"final"}},
		{"an end that is ready after a restore", at(call(1, record.Exit, failed(1)), restored, version(1, record.Facts{Number: 1, Phase: v1.PodFailed, Ready: true})), []string{"final"}},
		{"an end with a running container", at(call(1, record.Exit, failed(1)), version(1, record.Facts{Number: 1, Phase: v1.PodFailed, Running: 1})), []string{"final"}},
		{"an end with another exit code", at(call(1, record.Exit, record.Facts{Number: 1, Phase: v1.PodFailed, Exit: 2}), version(1, record.Facts{Number: 1, Phase: v1.PodFailed, Exit: 137})), []string{"final"}},

		{"readiness as was reported", at(list, call(1, record.Run, ready(1)), version(1, ready(1)), call(2, record.Flip, running(1)), request("PATCH", "web-uid", 200, 2), version(2, running(1)), call(3, record.Flip, ready(1)), version(3, ready(1))), nil},
		{"ready, and not reported so", at(call(1, record.Run, running(1)), version(1, ready(1))), []string{"readiness"}},
		{"ready again, as before", at(list, call(1, record.Run, ready(1)), version(1, ready(1)), call(2, record.Flip, running(1)), request("PATCH", "web-uid", 200, 2), version(2, running(1)), version(3, ready(1))), []string{"readiness"}},
		{"ready again after another writer", at(call(1, record.Run, ready(1)), version(1, ready(1)), version(2, running(1)), version(3, ready(1))), nil},
		{"made unready by the agent, and not reported so", at(list, call(1, record.Run, ready(1)), version(1, ready(1)), request("PATCH", "web-uid", 200, 2), version(2, running(1))), []string{"readiness"}},
		{"the readiness of a report whose number comes later", at(list, call(1, record.Run, ready(1)), version(1, ready(1)), call(2, record.Run, running(2)), request("PATCH", "web-uid", 200, 2), version(2, running(1)), version(3, running(2))), nil},
		{"the readiness before a restore", at(call(1, record.Run, ready(1)), version(1, ready(1)), call(2, record.Run, running(2)), version(2, running(2)), restored, version(1, ready(1))), nil},

		{"writes to the right pod", at(list, remove, call(1, record.Terminate, failed(0)), version(1, failed(0)), request("PATCH", "web-uid", 200), request("DELETE", "web-uid", 200)), nil},
		{"a write without a UID", at(list, version(1, running(0)), request("PATCH", "", 200)), []string{"right pod"}},
		{"a write with the UID of another pod", at(list, record.Record{Kind: record.Created, Name: "other", UID: "other-uid"}, request("PATCH", "other-uid", 409)), []string{"right pod"}},
		{"a delete before the pod was terminated", at(list, version(1, running(0)), request("DELETE", "web-uid", 200)), []string{"right pod"}},
		{"a delete that was not requested", at(list, call(1, record.Terminate, failed(0)), version(1, failed(0)), request("DELETE", "web-uid", 200)), []string{"right pod"}},
		{"a second delete that succeeds", at(list, remove, call(1, record.Terminate, failed(0)), request("DELETE", "web-uid", 200), later(request("DELETE", "web-uid", 200), 20*time.Second), later(returned(1), 5*time.Second)), []string{"right pod"}},
		{"a delete whose answer was lost", at(list, remove, call(1, record.Terminate, failed(0)), request("DELETE", "web-uid", 200), request("DELETE", "web-uid", 200)), nil},
		{"a second delete after a restore", at(list, remove, call(1, record.Terminate, failed(0)), request("DELETE", "web-uid", 200), restored, request("DELETE", "web-uid", 200)), nil},
		{"a second delete that finds nothing", at(list, remove, call(1, record.Terminate, failed(0)), request("DELETE", "web-uid", 200), request("DELETE", "web-uid", 404)), nil},

		{"the foreign condition is kept", at(foreign(1, 7), version(1, record.Facts{Gate: 7}), version(2, record.Facts{Gate: 7})), nil},
		{"the foreign condition is removed", at(foreign(1, 7), version(1, record.Facts{Gate: 7}), version(2, record.Facts{})), []string{"own fields"}},
		{"the foreign condition is taken back", at(foreign(1, 7), foreign(2, 8), version(1, record.Facts{Gate: 7}), version(2, record.Facts{Gate: 8}), version(3, record.Facts{Gate: 7})), []string{"own fields"}},
		{"the foreign condition is invented", at(version(1, record.Facts{Gate: 7})), []string{"own fields"}},
		{"the foreign condition is lost in its write", at(foreign(1, 7), version(1, record.Facts{Gate: 0})), []string{"own fields"}},

		{"the write that deletes the pod", at(foreign(1, 7), version(1, record.Facts{Gate: 7}), foreign(2, 8), version(2, record.Facts{Gate: 7, Deleting: true}), gone), nil},
		{"the foreign condition is lost in a deletion", at(foreign(1, 7), version(1, record.Facts{Gate: 7}), foreign(2, 8), version(2, record.Facts{Gate: 7, Deleting: true}), version(3, record.Facts{Gate: 7, Deleting: true}), gone), []string{"own fields"}},

		{"a write before the list", at(version(1, running(0)), request("PATCH", "web-uid", 200), list), []string{"list first"}},
		{"a list that the agent did not get", at(record.Record{Kind: record.Request, Agent: 1, Verb: "LIST", Code: 200, Sent: 504, Fault: "done and answered 504"}, request("PATCH", "web-uid", 200)), []string{"list first"}},
		{"a write of the next process before its list", at(list, request("PATCH", "web-uid", 200), record.Record{Kind: record.Request, Agent: 2, Verb: "PATCH", Name: "web", UID: "web-uid"}), []string{"list first"}},

		{"delivered in time", at(call(1, record.Run, running(1)), want, later(version(1, running(1)), 10*time.Second)), nil},
		{"delivered before", at(call(1, record.Run, running(1)), returned(1), version(1, running(1)), want, later(look(99*time.Second, true), 99*time.Second)), nil},
		{"delivered late", at(call(1, record.Run, running(1)), want, later(version(1, running(1)), 20*time.Second)), []string{"delivered"}},
		{"reported late after a restore, and delivered soon", at(restored, want, later(call(1, record.Run, running(1)), 70*time.Second), later(returned(1), 70*time.Second), later(version(1, running(1)), 71*time.Second)), nil},
		{"reported again, and delivered late", at(call(1, record.Run, running(1)), returned(1), want, later(call(2, record.Run, running(1)), 70*time.Second), later(returned(2), 70*time.Second), later(version(1, running(1)), 71*time.Second)), []string{"delivered"}},
		{"an end that the API had, lost by a restore and a new process", at(call(1, record.Exit, failed(1)), version(1, failed(1)), restored, version(1, running(0)), record.Record{Kind: record.Ended, Agent: 1},
			record.Record{Kind: record.Want, Name: "web", Facts: &record.Facts{Number: 1, Phase: v1.PodFailed}, Within: time.Second}, later(look(99*time.Second, true), 99*time.Second)), []string{"delivered"}},
		{"an end that the API had, lost by a restore", at(call(1, record.Exit, failed(1)), returned(1), version(1, failed(1)), restored, version(1, running(0)),
			record.Record{Kind: record.Want, Name: "web", Facts: &record.Facts{Number: 1, Phase: v1.PodFailed}, Within: time.Second}, later(look(99*time.Second, true), 99*time.Second)), []string{"delivered", "truth"}},
		{"an end in the journal, lost by a restore and a new process", at(call(1, record.Exit, failed(1)), version(1, running(0)), restored, version(1, running(0)), record.Record{Kind: record.Ended, Agent: 1},
			record.Record{Kind: record.Want, Name: "web", Facts: &record.Facts{Number: 1, Phase: v1.PodFailed}, Within: time.Second}, later(look(99*time.Second, true), 99*time.Second)), []string{"delivered"}},
		{"a report after an eviction that a killed process has not kept", at(call(1, record.Run, running(0)), version(1, running(0)), call(2, record.Evict, failed(1)), record.Record{Kind: record.Ended, Agent: 1}, call(3, record.Run, running(1)), returned(3),
			want, later(look(99*time.Second, false, "web-uid"), 99*time.Second)), []string{"delivered"}},
		{"a pod that the watch brings late", at(want, later(call(1, record.Run, running(1)), 60*time.Second), later(returned(1), 60*time.Second), later(version(1, running(1)), 70*time.Second), later(look(99*time.Second, true), 199*time.Second)), nil},
		{"a pod that the watch brings too late", at(want, later(call(1, record.Run, running(1)), 150*time.Second), later(returned(1), 150*time.Second), later(version(1, running(1)), 160*time.Second), later(look(99*time.Second, true), 199*time.Second)), []string{"delivered"}},
		{"delivered late, and a fault has not ended", at(call(1, record.Run, running(1)), record.Record{Kind: record.Fault, Fault: "reset", Verb: record.End, Err: "DELETE /proxies/link: 503"}, want, later(version(1, running(1)), 20*time.Second)), nil},
		{"delivered late, and the network was started again", at(call(1, record.Run, running(1)), record.Record{Kind: record.Fault, Fault: "reset", Verb: record.End, Err: "DELETE /proxies/link: 503"}, record.Record{Kind: record.Fault, Fault: record.NetworkRestarted, Verb: record.End}, want, later(version(1, running(1)), 30*time.Second)), []string{"delivered"}},
		{"never delivered", at(call(1, record.Run, running(1)), returned(1), want, later(look(99*time.Second, false, "web-uid"), 99*time.Second)), []string{"delivered"}},
		{"deleted instead", at(call(1, record.Run, running(1)), returned(1), want, gone, later(look(99*time.Second, true), 99*time.Second)), nil},
		{"the history ends before it is late", at(call(1, record.Run, running(1)), want, later(version(1, running(0)), 10*time.Second)), nil},
		{"a pod that does not go", at(record.Record{Kind: record.Want, Name: "web", Facts: &record.Facts{}, Absent: true, Within: time.Second}, later(version(9, running(0)), 10*time.Second)), []string{"delivered"}},

		{"pending until it is delivered", at(call(1, record.Run, running(1)), returned(1), look(9*time.Second, false, "web-uid")), nil},
		{"neither delivered nor pending", at(call(1, record.Run, running(1)), returned(1), look(9*time.Second, false)), []string{"truth"}},
		{"flushed and not delivered", at(call(1, record.Run, running(1)), returned(1), look(9*time.Second, true, "web-uid")), []string{"truth"}},
		{"an eviction waits for its containers", at(call(1, record.Evict, failed(1)), returned(1), look(9*time.Second, true)), nil},
		{"an eviction hides a report", at(call(1, record.Run, running(1)), returned(1), call(2, record.Evict, failed(2)), returned(2), later(look(2500*time.Millisecond, true), 5*time.Second)), nil},
		{"an eviction that has not returned hides a report", at(call(1, record.Run, running(1)), returned(1), call(2, record.Evict, failed(2)), look(4*time.Second, true)), nil},
		{"an eviction that the journal has brought back hides a report", at(call(1, record.Evict, failed(1)), returned(1), record.Record{Kind: record.Started, Agent: 1}, call(2, record.Run, running(2)), over(2), look(9*time.Second, true)), nil},
		{"an eviction that the journal has not brought back", at(call(1, record.Evict, failed(1)), returned(1), record.Record{Kind: record.Started, Agent: 1}, call(2, record.Run, running(2)), returned(2), look(9*time.Second, true)), []string{"truth"}},
		{"an eviction that is about to become an end", at(call(1, record.Evict, failed(1)), returned(1), call(2, record.Terminate, failed(1)), look(9*time.Second, true)), nil},
		{"a report after an eviction has become an end", at(call(1, record.Evict, failed(1)), returned(1), call(2, record.Terminate, failed(1)), returned(2), look(9*time.Second, true)), []string{"truth"}},
		{"a loss of readiness that is neither delivered nor pending", at(call(1, record.Run, ready(1)), returned(1), version(1, ready(1)), call(2, record.Flip, running(1)), returned(2), later(look(99*time.Second, false), 99*time.Second)), []string{"truth"}},
		{"readiness that was delivered, and that another writer takes", at(call(1, record.Run, ready(1)), returned(1), version(1, ready(1)), version(2, running(1)), look(9*time.Second, true)), nil},
		{"a newer report than the last that has returned", at(call(1, record.Run, ready(1)), returned(1), call(2, record.Flip, running(1)), version(1, running(1)), look(9*time.Second, true)), nil},
		{"an end that is neither delivered nor pending", at(call(1, record.Run, running(1)), version(1, running(1)), call(2, record.Terminate, failed(1)), returned(2), look(9*time.Second, false)), []string{"truth"}},
		{"what the API had long before a restore", at(call(1, record.Run, running(1)), returned(1), version(1, running(1)), restored, version(1, running(0)), later(look(99*time.Second, true), 99*time.Second)), []string{"truth"}},
		{"what the API had right before a restore", at(call(1, record.Run, running(1)), returned(1), version(1, running(1)), restored, version(1, running(0)), look(30*time.Second, true)), nil},
		{"a report that came during the look", at(call(1, record.Run, running(1)), later(returned(1), 9*time.Second), look(8*time.Second, true)), nil},

		{"a call that does not return", at(call(1, record.Run, running(1)), later(list, 99*time.Second)), []string{"calls"}},
		{"a call that stores nothing", at(call(1, record.Run, running(1)), record.Record{Kind: record.Return, Agent: 1, ID: 1, Name: "web", Err: "no"}), []string{"calls"}},
		{"a call for a pod that is gone", at(call(1, record.Run, running(1)), gone, record.Record{Kind: record.Return, Agent: 1, ID: 1, Name: "web", Err: "no"}), nil},
		{"a call whose process is killed", at(call(1, record.Run, running(1)), record.Record{Kind: record.Ended, Agent: 1}, later(list, 99*time.Second)), nil},
		{"a process that ends by itself", at(record.Record{Kind: record.Ended, Agent: 1, Err: "exit status 2"}), []string{"calls"}},

		{"goroutines that go", at(measured(time.Second, 40), measured(2*time.Second, 90)), nil},
		{"goroutines that stay", at(measured(time.Second, 40), measured(2*time.Second, 400)), []string{"resources"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, v := range Judge(c.history) {
				got = append(got, v.Invariant)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want violations of %q", Judge(c.history), c.want)
			}
		})
	}
}

// The shortest history of a violation is of its pod alone, and has nothing that could be left out.
func TestShrink(t *testing.T) {
	var history []record.Record
	for n := 1; n <= 50; n++ {
		history = append(history, call(int64(n), record.Run, running(n)), returned(int64(n)), version(uint64(n), running(n)))
		history = append(history, record.Record{Kind: record.Version, Name: "other", RV: uint64(n), Facts: &record.Facts{}})
	}
	history = at(append(history, version(60, running(20)))...)
	violations := Judge(history)
	if len(violations) != 1 {
		t.Fatalf("got %v, want one violation", violations)
	}
	short := Shrink(history, violations[0])
	if len(short) > 3 {
		t.Errorf("got %d records, want the newer report, and the versions with it and after it: %v", len(short), short)
	}
	if again := Judge(short); len(again) == 0 || again[0].Invariant != "monotonic" {
		t.Errorf("got %v of the shortest history, want the violation", again)
	}
}

// Reports that repeat a number, as changes of readiness do, and a version that none explains: the search is not exponential in the repetitions.
func TestRepeatedReports(t *testing.T) {
	var history []record.Record
	for n := 1; n <= 60; n++ {
		history = append(history, call(int64(n), record.Flip, running(1)))
	}
	history = append(history, call(61, record.Run, running(2)), version(1, running(2)), version(2, running(1)))
	if got := monotonic(at(history...)); len(got) != 1 {
		t.Errorf("got %v, want that an older report is there after a newer one", got)
	}
}
