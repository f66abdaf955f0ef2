package ruleset

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
)

const headOfRules = "apiVersion: statusd/v1alpha1\nkind: Rules\ngroups:\n  - name: g\n    rules:\n"

// Each mistake has its place.
func TestMistakesHaveTheirPlaces(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"bytes that are no UTF-8", headOfRules + "      - name: A\n        expr: pod.name == \"\xff\"\n", "rules.yaml:7:28: invalid leading UTF-8 octet"},
		{"a control character", headOfRules + "      - name: A\x01\n", "rules.yaml:6:16: control characters are not allowed"},
		{"an effect that no taint has", headOfRules + "      - {name: A, expr: pod.phase == \"Failed\", severity: info, actions: [{action: taint, taint: \"a=b:Never\"}]}\n",
			`rules.yaml:6:97: taint "a=b:Never": want KEY[=VALUE]:NoSchedule, PreferNoSchedule or NoExecute`},
		{"a key that no taint has", headOfRules + "      - {name: A, expr: pod.phase == \"Failed\", severity: info, actions: [{action: taint, taint: \"a b:NoExecute\"}]}\n",
			`rules.yaml:6:97: taint "a b:NoExecute": want KEY[=VALUE]:NoSchedule, PreferNoSchedule or NoExecute`},
		{"a URL that is none of HTTP", headOfRules + "      - {name: A, expr: pod.phase == \"Failed\", severity: info, actions: [{action: webhook, url: \"ftp://x\"}]}\n",
			`rules.yaml:6:97: "ftp://x" is not an address, want http://HOST/PATH or https://HOST/PATH`},
		{"the name of statusd's own alert", headOfRules + "      - {name: StatusdRuleFails, expr: pod.phase == \"Failed\", severity: info}\n",
			"rules.yaml:6:16: StatusdRuleFails is the alert about rules that cannot be evaluated: want another name"},
		{"a phase that there is not", headOfRules + "      - {name: A, expr: '\"x\" == pod.name || pod.phase == \"running\"', severity: info}\n",
			`rules.yaml:6:58: Pod.phase is never "running" (did you mean Running?); it is Pending, Running, Succeeded, Failed, Unknown`},
		{"a state in a list", headOfRules + "      - {name: A, expr: 'pod.containerDetails.exists(c, c.state in [\"running\", \"crashed\"])', severity: info}\n",
			`rules.yaml:6:80: Container.state is never "crashed"; it is waiting, running, terminated`},
		{"a state that has no duration", headOfRules + "      - {name: A, expr: 'durationIn(\"Notready\") > duration(\"1m\")', severity: info}\n",
			`rules.yaml:6:37: the state of a Pod is never "Notready" (did you mean NotReady?); it is Evicted, Failed, Initializing, NotReady, Pending, Ready, Rejected, Running, Starting, Succeeded, Terminating, Unknown, Unscheduled`},
		{"an empty word", headOfRules + "      - {name: A, expr: 'pod.phase != \"\" && pod.qosClass == \"\"', severity: info}\n", ""},
		{"a division by what may be 0", headOfRules + "      - {name: A, expr: '10 / pod.restarts > 2', severity: info}\n",
			"rules.yaml:6:31: a division by pod.restarts, which may be 0: write pod.restarts > 0 && …, or divide by double(pod.restarts)"},
		{"a division by 0", headOfRules + "      - {name: A, expr: 'pod.restarts % 0 > 2', severity: info}\n", "rules.yaml:6:41: a division by 0"},
		{"divisions that can be done", headOfRules + "      - {name: A, expr: 'pod.restarts > 0 && 10 / pod.restarts > 2 || pod.restarts / 3 > 2 || 1.0 / double(pod.ready) > 0.5', severity: info}\n", ""},
		{"PromQL", headOfRules + "      - {name: A, expr: 'increase(kube_pod_container_status_restarts_total{namespace=\"shop\"}[10m]) > 3', severity: info}\n",
			"rules.yaml:6:26: this looks like PromQL; the expression of a rule is CEL about one pod, container or node, such as container.restarts > 3; the history is in functions such as durationIn()"},
		{"a file of Prometheus", "groups:\n- name: g\n  rules:\n  - alert: A\n    expr: up == 0\n    for: 5m\n    labels: {severity: page}\n",
			"rules.yaml:4:5: this looks like a file of Prometheus rules, whose expressions are PromQL; a file of statusd has apiVersion: statusd/v1alpha1, kind: Rules, and rules with a name and an expression in CEL"},
		{"annotations of a pod", headOfRules + "      - {name: A, expr: 'pod.annotations[\"example.com/owner\"] == \"shop\"', severity: info}\n", ""},
		{"only a separator", "---\n---\n", "rules.yaml:1:1: the file is empty; want apiVersion: statusd/v1alpha1, kind: Rules, groups"},
		{"separators around", "---\n" + headOfRules + "      - {name: A, expr: pod.phase == \"Failed\", severity: info}\n---\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse("rules.yaml", []byte(test.text))
			if got := messageOf(err); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func messageOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// An empty file is a mistake also beside a file with mistakes.
func TestAnEmptyFileBesideOthers(t *testing.T) {
	files := fstest.MapFS{"a.yaml": {Data: []byte("kind: Rules\n")}, "b.yaml": {}}
	if _, err := LoadFS(files, "a.yaml", "b.yaml"); !strings.Contains(messageOf(err), "b.yaml:1:1: the file is empty") {
		t.Errorf("got %v", err)
	}
}

// What is in a directory and is no file is passed over, and a file without an end is refused.
func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(headOfRules+"      - {name: A, expr: pod.phase == \"Failed\", severity: info}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("directory", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if set, err := Load(dir); err != nil || len(set.Rules()) != 1 {
		t.Errorf("got %v, %v", set.Rules(), err)
	}
	if _, err := Load("/dev/zero"); messageOf(err) != "/dev/zero: the file has more than 1048576 bytes" {
		t.Errorf("got %v", err)
	}
}
