package main

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestDifferences_FieldsThatAServerDrops_AreNamed(t *testing.T) {
	pod := podWithFields()
	pod.Generation = 1
	want := allFields(pod)
	if got, err := differences(want, *want.DeepCopy()); err != nil || len(got) > 0 {
		t.Errorf("of the same status: %v, %v", got, err)
	}
	stored := *want.DeepCopy()
	stored.Resources = nil
	stored.Conditions[0].ObservedGeneration = 7
	stored.ContainerStatuses[0].VolumeMounts[0].VolumeStatus = nil
	stored.PodIPs = stored.PodIPs[:1]
	stored.Conditions = append(stored.Conditions, v1.PodCondition{Type: "example.com/other"})
	got, err := differences(want, stored)
	if want := []string{"conditions.observedGeneration", "containerStatuses.volumeMounts.volumeStatus", "podIPs", "resources"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestJudge_OutputOfTheCompilerAndOfTests_IsRead(t *testing.T) {
	for _, c := range []struct{ out, want string }{
		{"compat: built\n--- FAIL: TestB (0.1s)\n    --- FAIL: TestB/sub (0.1s)\n--- FAIL: TestA (0.1s)\nFAIL\n", "| 1.0 | yes | `TestA`, `TestB` |\n"},
		{"compat: built\nok\n", "| 1.0 | yes | none |\n"},
		{"x.go:1:2: undefined: v1.VolumeStatus\nx.go:2:2: a.New undefined (type v1.Pod has no field or method New)\n", "| 1.0 | no: there is no `New`, `v1.VolumeStatus` | not run |\n"},
	} {
		if got := libraryTable([]libraryResult{judge("1.0", []byte(c.out))}); got[len(got)-len(c.want):] != c.want {
			t.Errorf("got\n%swant the row %s", got, c.want)
		}
	}
}

func TestServerTable_VersionsAreColumns(t *testing.T) {
	table := serverTable([]serverResult{{Version: "1.0", Passed: 5, Failures: []string{"p TestX"}, Failed: 1, Node: nodeResult{Pods: 3, Right: 2}}, {Version: "1.1"}})
	for _, want := range []string{"| API server | 1.0 | 1.1 |\n|---|---|---|\n", "| real tests that pass | 5 | not run |\n", "| real tests that fail | `p TestX` | not run |\n", "| 2 of 3 | 0 of 0 |\n"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
}
