package broken

import "testing"

func TestJudge(t *testing.T) {
	one := Workload{First: []string{"no such table", "exit code 3 or code 3"}, ToDo: []string{"table"}, Never: []string{"asked it to stop"}}
	for _, test := range []struct {
		said string
		want Verdict
		fix  bool
	}{
		{"Pod d/p is not Ready, because container \"db\" is not ready: exit code 3: no such table · 4 restarts. To do: create the table (kubectl logs).", Yes, true},
		{"Pod d/p is not Ready, because it fails: exit code 3 · 4 restarts. To do: read the log.", Partly, false},
		{"Pod d/p is not Ready, because it waits · exit code 3: no such table. To do: no such table.", No, true},
		{"Pod d/p is not Ready, because it waits. Next: exit code 3: no such table.", No, false},
		{"Pod d/p is not Ready.\n\n- Exit code 3: no such table.\n  To do: create the table.\n\n- Readiness.", Yes, true},
		{"Pod d/p is not Ready, because exit code 3: no such table. To do: find what asked it to stop.", Wrong, false},
		{"exit code 3: no such table \x1b[2J", Wrong, false},
		{"Pod d/p waits.\n\nThe end of the log of container \"db\":\n  | exit code 3: no such table", No, false},
	} {
		if got := one.Judge(test.said); got.Cause != test.want || got.Fix != test.fix {
			t.Errorf("%q is %s (fix %t), want %s (fix %t)", test.said, got.Cause, got.Fix, test.want, test.fix)
		}
	}
}
