package apifacts_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	k8stesting "k8s.io/client-go/testing"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/apifacts"
	"github.com/statusd/statusd/test/broken"
)

var showReported = flag.Bool("show-reported", false, "show what is said about each workload of testdata/reported")

// reported is a broken workload as the kubelet, the scheduler and the controllers of Kubernetes report it: the objects of the API
// and the logs, with the texts that Kubernetes writes. Its file says as those of examples/broken what is wrong with it.
type reported struct {
	broken.Workload
	api []runtime.Object
	// logs are those of containers, by pod/container, and pod/container/previous.
	logs map[string]string
}

// moments are times in the files: @90s is 90 seconds ago, @+5m in 5 minutes.
var moments = regexp.MustCompile(`@(\+?)(\d+[smh])`)

func readReported(t *testing.T, file string) reported {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	data = moments.ReplaceAllFunc(data, func(m []byte) []byte {
		parts := moments.FindSubmatch(m)
		d, err := time.ParseDuration(string(parts[2]))
		if err != nil {
			t.Fatal(err)
		}
		if len(parts[1]) == 0 {
			d = -d
		}
		return []byte(`"` + now.Add(d).UTC().Format(time.RFC3339) + `"`)
	})
	one, err := broken.Read(strings.TrimSuffix(filepath.Base(file), ".yaml"), data)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	r := reported{Workload: one, logs: map[string]string{}}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		var raw runtime.RawExtension
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := r.add(raw.Raw, now); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	r.addNode("n1", now) // on which the pods are that name no other node
	return r
}

// addNode adds a node that is well, unless the file has it.
func (r *reported) addNode(name string, now time.Time) {
	for _, object := range r.api {
		if node, ok := object.(*v1.Node); ok && node.Name == name {
			return
		}
	}
	ready := v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Time{Time: now}}
	r.api = append(r.api, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Conditions: []v1.NodeCondition{ready}}}, lease(name, now))
}

func lease(node string, now time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceNodeLease, Name: node}, Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: now.Add(-3 * time.Second)}}}
}

// add takes a document: an object of the API, the events of one, or a log.
func (r *reported) add(raw []byte, now time.Time) error {
	var short struct {
		Kind, Of, Container, Text string
		Previous                  bool
		Items                     []struct {
			Reason, Message, Container string
			Normal                     bool
			Count                      int32
			Last                       metav1.Time
		}
	}
	if err := yaml.Unmarshal(raw, &short); err != nil {
		return err
	}
	switch short.Kind {
	case "Events":
		for i, e := range short.Items {
			event := &v1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint(short.Of, ".", i)}, InvolvedObject: v1.ObjectReference{Name: short.Of, Namespace: "shop", UID: types.UID(short.Of)},
				Type: v1.EventTypeWarning, Reason: e.Reason, Message: e.Message, Count: max(1, e.Count), LastTimestamp: e.Last, FirstTimestamp: e.Last}
			if e.Normal {
				event.Type = v1.EventTypeNormal
			}
			if e.Container != "" {
				event.InvolvedObject.FieldPath = "spec.containers{" + e.Container + "}"
			}
			r.api = append(r.api, event)
		}
		return nil
	case "Log":
		key := short.Of + "/" + short.Container
		if short.Previous {
			key += "/previous"
		}
		r.logs[key] = short.Text
		return nil
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		return err
	}
	access, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	access.SetUID(types.UID(access.GetName()))
	if created := access.GetCreationTimestamp(); created.IsZero() {
		access.SetCreationTimestamp(metav1.Time{Time: now.Add(-10 * time.Minute)})
	}
	if node, ok := object.(*v1.Node); ok {
		if node.Annotations["test/silent"] == "" {
			r.api = append(r.api, lease(node.Name, now))
		}
	} else if _, ofCluster := object.(*storagev1.StorageClass); access.GetNamespace() == "" && !ofCluster {
		access.SetNamespace("shop")
	}
	r.api = append(r.api, object)
	return nil
}

// client answers as an API server that has the objects and the logs.
func (r *reported) client() *fake.Clientset {
	client := fake.NewClientset(r.api...)
	client.PrependReactor("get", "pods", func(action k8stesting.Action) (bool, runtime.Object, error) {
		log, ok := action.(k8stesting.GenericAction)
		if !ok || action.GetSubresource() != "log" {
			return false, nil, nil
		}
		options := log.GetValue().(*v1.PodLogOptions)
		for key, text := range r.logs {
			parts := strings.Split(key, "/")
			if parts[1] == options.Container && (len(parts) == 3) == options.Previous {
				return true, &runtime.Unknown{Raw: []byte(text)}, nil
			}
		}
		return true, nil, errors.New("no log")
	})
	return client
}

// explained explains what the file names, as the command does.
func (r *reported) explained(t *testing.T) (explain.Explanation, error) {
	kind, name, _ := strings.Cut(r.Explain, "/")
	kind, _ = apifacts.Kind(kind)
	if kind != "Pod" {
		w, err := apifacts.Workload(t.Context(), r.client(), kind, "shop", name, time.Now())
		return w.Explain(), err
	}
	facts, err := apifacts.Collect(t.Context(), r.client(), "shop", name, time.Now())
	return explain.Pod(facts), err
}

// What Kubernetes reports of broken workloads is explained: the cause in the first clause, the fix in the advice, and nothing that
// would be wrong. The files were written, with cause and fix, before an explanation was read.
func TestReported_IsExplained(t *testing.T) {
	files, err := filepath.Glob("testdata/reported/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 40 {
		t.Errorf("%d workloads, want at least 40", len(files))
	}
	for _, file := range files {
		r := readReported(t, file)
		t.Run(r.Name, func(t *testing.T) {
			e, err := r.explained(t)
			if err != nil {
				t.Fatal(err)
			}
			said := e.Text(time.UTC)
			got := r.Judge(said)
			if *showReported {
				t.Logf("cause %s, fix %t\n%s", got.Cause, got.Fix, said)
			}
			if got.Cause != broken.Yes || !got.Fix {
				t.Errorf("cause %s, fix %t; want %q in the first clause, %q in the advice, never %q\n%s", got.Cause, got.Fix, r.First, r.ToDo, r.Never, said)
			}
		})
	}
}
