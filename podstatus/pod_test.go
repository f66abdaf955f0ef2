package podstatus_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

func TestIsTerminal(t *testing.T) {
	for phase, want := range map[v1.PodPhase]bool{
		v1.PodSucceeded: true, v1.PodFailed: true,
		v1.PodPending: false, v1.PodRunning: false, v1.PodUnknown: false, "": false,
	} {
		if got := podstatus.IsTerminal(phase); got != want {
			t.Errorf("phase %q: got %t, want %t", phase, got, want)
		}
	}
}

func TestStaticIsWhereAPodComesFrom(t *testing.T) {
	for _, row := range []struct {
		pod            string
		static, mirror bool
	}{
		{"app=main", false, false},
		{"source=api app=main", false, false},
		{"source=file app=main", true, false},
		{"source=http app=main", true, false},
		{"source=api mirror app=main", false, true},
		{"source=file mirror app=main", false, true},
		{"source=file version=7 app=main", false, false}, // any user may set the annotation
		{"source=api version=7 app=main", false, false},
		{"version=7 app=main", false, false},
	} {
		pod := parsePod(t, row.pod)
		if got := podstatus.IsStatic(pod); got != row.static {
			t.Errorf("%s: static: got %t, want %t", row.pod, got, row.static)
		}
		if got := podstatus.IsMirror(pod); got != row.mirror {
			t.Errorf("%s: mirror: got %t, want %t", row.pod, got, row.mirror)
		}
	}
	if podstatus.IsStatic(&v1.Pod{}) || podstatus.IsMirror(&v1.Pod{}) {
		t.Error("a pod without annotations is static or a mirror, want neither")
	}
}

func TestIsSidecar(t *testing.T) {
	for text, want := range map[string]bool{"c": false, "c/Always": true, "c/Never": false, "c/OnFailure": false} {
		c := parseContainer(t, text)
		if got := podstatus.IsSidecar(&c); got != want {
			t.Errorf("%s: got %t, want %t", text, got, want)
		}
	}
}

func TestD1_DeletableOnlyWhenAskedTerminalFinishedAndNoMirror(t *testing.T) {
	for _, row := range []struct {
		pod      string
		phase    v1.PodPhase
		finished bool
		want     bool
	}{
		{"deleted app=main", v1.PodSucceeded, true, true},
		{"deleted app=main", v1.PodFailed, true, true},
		{"deleted source=file app=main", v1.PodFailed, true, true},
		{"app=main", v1.PodFailed, true, false},
		{"deleted mirror app=main", v1.PodFailed, true, false},
		{"deleted app=main", v1.PodFailed, false, false},
	} {
		pod := parsePod(t, row.pod)
		pod.Status.Phase = row.phase
		if got := podrules.Deletable(pod, row.finished); got != row.want {
			t.Errorf("%s, %s, finished %t: got %t, want %t", row.pod, row.phase, row.finished, got, row.want)
		}
	}
}

func TestD6_AnAPIPhaseThatIsNotTerminalDelaysDeletion(t *testing.T) {
	for _, phase := range []v1.PodPhase{v1.PodPending, v1.PodRunning, v1.PodUnknown, ""} {
		pod := parsePod(t, "deleted app=main")
		pod.Status.Phase = phase
		if podrules.Deletable(pod, true) {
			t.Errorf("API phase %q: deletable, want a delay until the terminal phase was written", phase)
		}
	}
}
