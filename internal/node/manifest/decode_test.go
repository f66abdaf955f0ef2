package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/statusd/statusd/podstatus"
)

func key(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }

func TestBadManifests(t *testing.T) {
	checked := map[string]bool{}
	datadriven.RunTest(t, "testdata/bad.txt", func(t *testing.T, d *datadriven.TestData) string {
		var name string
		d.ScanArgs(t, "file", &name)
		checked[name] = true
		data, err := os.ReadFile(filepath.Join("testdata/bad", name))
		if err != nil {
			t.Fatal(err)
		}
		pods, problems := Decode(name, data, "node-1")
		var b strings.Builder
		for _, pod := range pods {
			fmt.Fprintf(&b, "runs: %s\n", key(pod.Pod))
		}
		if len(problems) == 0 {
			t.Errorf("%s is accepted, but it is in testdata/bad", name)
		}
		for _, p := range problems {
			fmt.Fprintln(&b, p.Error())
		}
		return b.String()
	})
	entries, err := os.ReadDir("testdata/bad")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !checked[e.Name()] {
			t.Errorf("testdata/bad/%s has no entry in testdata/bad.txt, so no test would notice if it became valid", e.Name())
		}
	}
}

const minimal = `
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: web
    image: host
`

func decodeOne(t *testing.T, file, text, node string) *v1.Pod {
	t.Helper()
	pods, problems := Decode(file, []byte(text), node)
	if len(pods) != 1 || len(problems) != 0 {
		t.Fatalf("got %d pods and problems %v, want one pod of\n%s", len(pods), problems, text)
	}
	return pods[0].Pod
}

func TestStaticPodHasTheKubeletsIdentity(t *testing.T) {
	pod := decodeOne(t, "/manifests/web.yaml", minimal, "Node-1")
	if pod.Name != "web-node-1" || pod.Namespace != "default" || pod.Spec.NodeName != "Node-1" {
		t.Errorf("got %s on node %q, want default/web-node-1 on Node-1", key(pod), pod.Spec.NodeName)
	}
	if len(pod.UID) != 32 || pod.Annotations[podstatus.HashAnnotation] != string(pod.UID) {
		t.Errorf("got UID %q and hash %q, want 32 digits, twice the same", pod.UID, pod.Annotations[podstatus.HashAnnotation])
	}
	if got := pod.Annotations[podstatus.SourceAnnotation]; got != "file" {
		t.Errorf("got source %q, want file", got)
	}
	if !podstatus.IsStatic(pod) || podstatus.IsMirror(pod) {
		t.Errorf("static %v, mirror %v: want a static pod that is no mirror", podstatus.IsStatic(pod), podstatus.IsMirror(pod))
	}
	want := v1.Toleration{Operator: "Exists", Effect: "NoExecute"}
	if len(pod.Spec.Tolerations) != 1 || pod.Spec.Tolerations[0] != want {
		t.Errorf("got tolerations %v, want %v", pod.Spec.Tolerations, want)
	}
	if pod.Status.Phase != v1.PodPending {
		t.Errorf("got phase %q, want Pending", pod.Status.Phase)
	}
}

func TestUIDComesFromContentFileAndNode(t *testing.T) {
	base := decodeOne(t, "/m/a.yaml", minimal, "n").UID
	same := map[string]*v1.Pod{
		"again":                   decodeOne(t, "/m/a.yaml", minimal, "n"),
		"a comment":               decodeOne(t, "/m/a.yaml", "# hello\n"+minimal, "n"),
		"what a dry run adds":     decodeOne(t, "/m/a.yaml", strings.Replace(minimal, "name: web\nspec", "name: web\n  creationTimestamp: null\nspec", 1)+"status: {}\n", "n"),
		"the same pod in JSON":    decodeOne(t, "/m/a.yaml", `{"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"image":"host","name":"web"}]},"metadata":{"name":"web"}}`, "n"),
		"a separator and a blank": decodeOne(t, "/m/a.yaml", "---\n"+minimal+"---\n\n", "n"),
	}
	for what, pod := range same {
		if pod.UID != base {
			t.Errorf("%s: UID changed from %s to %s, the pod would be restarted for nothing", what, base, pod.UID)
		}
	}
	other := map[string]*v1.Pod{
		"another node":  decodeOne(t, "/m/a.yaml", minimal, "n2"),
		"another file":  decodeOne(t, "/m/b.yaml", minimal, "n"),
		"another image": decodeOne(t, "/m/a.yaml", strings.Replace(minimal, "host", "host2", 1), "n"),
	}
	for what, pod := range other {
		if pod.UID == base {
			t.Errorf("%s: UID is still %s, the change would not be seen", what, base)
		}
	}
}

func TestDefaultsAreThoseOfTheAPIServer(t *testing.T) {
	pod := decodeOne(t, "f", minimal+`
    ports: [{containerPort: 80}]
    env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    resources: {limits: {cpu: 1, memory: 1Mi}, requests: {cpu: 500m}}
    readinessProbe: {httpGet: {port: 80}}
    livenessProbe: {grpc: {port: 81}, periodSeconds: 3}
    lifecycle: {preStop: {httpGet: {port: 80}}}
  volumes:
  - {name: scratch}
  - {name: host, hostPath: {path: /tmp}}
  - {name: down, downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}
  - {name: proj, projected: {sources: [{downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}]}}
  - {name: img, image: {reference: "repo/image:v1"}}
  hostNetwork: true
`, "n")
	got, err := yaml.Marshal(pod.Spec)
	if err != nil {
		t.Fatal(err)
	}
	datadriven.RunTest(t, "testdata/defaults.txt", func(*testing.T, *datadriven.TestData) string { return string(got) })
}

func TestPullPolicyFollowsTheTag(t *testing.T) {
	for image, want := range map[string]v1.PullPolicy{
		"host":                    v1.PullAlways,
		"host:latest":             v1.PullAlways,
		"registry:5000/host":      v1.PullAlways,
		"host:v1":                 v1.PullIfNotPresent,
		"registry:5000/a/host:v1": v1.PullIfNotPresent,
		"host@sha256:0123":        v1.PullIfNotPresent,
	} {
		if got := defaultPullPolicy(image); got != want {
			t.Errorf("image %s: got %s, want %s", image, got, want)
		}
	}
}

func TestSeveralDocumentsOfAFile(t *testing.T) {
	text := minimal + "---\n" + strings.Replace(minimal, "name: web\nspec", "name: db\n  namespace: data\nspec", 1) + "--- # end\n"
	pods, problems := Decode("f", []byte(text), "n")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var names []string
	for _, p := range pods {
		names = append(names, key(p.Pod))
	}
	if want := []string{"default/web-n", "data/db-n"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

func TestTolerationIsNotGivenTwice(t *testing.T) {
	pod := decodeOne(t, "f", minimal+"  tolerations: [{operator: Exists, effect: NoExecute}]\n", "n")
	if len(pod.Spec.Tolerations) != 1 {
		t.Errorf("got %v, want one toleration", pod.Spec.Tolerations)
	}
}

// Whatever a person or a broken disk puts in a file, reading it ends in pods or problems.
func TestDecodeSurvivesAnything(t *testing.T) {
	var seeds []string
	entries, err := os.ReadDir("testdata/bad")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join("testdata/bad", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, string(data))
	}
	seeds = append(seeds, minimal)
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.SampledFrom(seeds).Draw(t, "manifest"))
		for range rapid.IntRange(0, 4).Draw(t, "edits") {
			if len(text) == 0 {
				break
			}
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "edit") {
			case 0:
				text = text[:at]
			case 1:
				text = slices.Delete(text, at, at+1)
			case 2:
				text[at] = rapid.SampledFrom([]byte("\x00\n\t :-[]{}&*!|>'\"%@`#,?")).Draw(t, "byte")
			}
		}
		pods, problems := Decode("f", text, "n")
		if len(pods) == 0 && len(problems) == 0 {
			t.Fatalf("neither pod nor problem for\n%s", text)
		}
		lines := strings.Count(string(text), "\n") + 1
		for _, p := range problems {
			if p.Line < 0 || p.Line > lines {
				t.Fatalf("problem on line %d of %d: %v\n%s", p.Line, lines, p, text)
			}
		}
	})
}

func TestPortReferenceMayBeNumberOrName(t *testing.T) {
	pod := decodeOne(t, "f", minimal+"    ports: [{containerPort: 80, name: http}]\n    readinessProbe: {tcpSocket: {port: http}}\n", "n")
	if got := pod.Spec.Containers[0].ReadinessProbe.TCPSocket.Port; got != intstr.FromString("http") {
		t.Errorf("got port %v, want http", got)
	}
}
