package scenes

import (
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/audit"
)

func TestTable(t *testing.T) {
	frozen := Drift{Kind: audit.KubeletBehindRuntime, Pod: "default/web", Container: "main"}
	got := Table([]Result{
		{Scene: Scene{Name: "frozen", What: "stop", Expect: []Drift{frozen}, Silent: audit.SideKubelet},
			Seen: map[Drift]time.Duration{frozen: 1500 * time.Millisecond}, Silent: 3 * time.Second, Cleared: time.Second},
		{Scene: Scene{Name: "calm", What: "nothing"}, Wrong: []string{"unexpected drift: X"}},
	})
	want := `| scene | what is done | expected | seen | seconds until seen | seconds until clear |
|---|---|---|---|---|---|
| frozen | stop | side kubelet silent, KubeletBehindRuntime default/web container main | side kubelet silent, KubeletBehindRuntime default/web container main | 3.0, 1.5 | 1.0 |
| calm | nothing | no drift | no drift, **unexpected drift: X** | - | 0.0 |
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A lie that was not played keeps its row, and a number that is its place among all lies.
func TestLieTable_KeepsRowsOfOtherRuns(t *testing.T) {
	all := Lies()
	before := "| 9 | " + all[0].Name + " | of another run |\n| 1 | no lie any more | x |\n"
	got := LieTable([]Telling{{Lie: all[1]}}, before)
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 4 || lines[2] != "| 1 | "+all[0].Name+" | of another run |" || !strings.HasPrefix(lines[3], "| 2 | "+all[1].Name+" | ") {
		t.Errorf("got\n%s", got)
	}
}

func TestReplaceKeepsTheRestOfTheDocument(t *testing.T) {
	document := "a\n" + SceneMarks.Begin + "\nold\n" + SceneMarks.End + "\nb\n"
	got, err := SceneMarks.Replace(document, "new\n")
	if want := strings.Replace(document, "old", "new", 1); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := SceneMarks.Replace("no marks", "new\n"); err == nil {
		t.Error("a document without marks is taken")
	}
}
