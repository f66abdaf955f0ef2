package ruleset

import "testing"

// Each rule of the pack says what happened, what it means, what to do and where to look.
func TestPackIsComplete(t *testing.T) {
	set := Pack()
	if len(set.Rules()) < 25 {
		t.Errorf("the pack has %d rules", len(set.Rules()))
	}
	for _, r := range set.Rules() {
		for _, name := range []string{"summary", "description", "action", "runbook"} {
			if r.Annotations[name] == "" {
				t.Errorf("%s has no annotation %s", r.Name, name)
			}
		}
		if len(r.Actions) > 0 {
			t.Errorf("%s acts: actions are for operators to add", r.Name)
		}
		if r.Program.Loose {
			t.Errorf("%s uses time in a way of which it is not known when its truth changes", r.Name)
		}
	}
}
