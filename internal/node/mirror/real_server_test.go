//go:build real

package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/node/manifest"
	"github.com/statusd/statusd/internal/node/source"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) {
	// One of client-go's handlers sleeps until a second after the last error by the clock
	// at program start: for decades, where a test's virtual time begins in the year 2000.
	utilruntime.ErrorHandlers = nil
	shared.Main(m)
}

// patience bounds each wait for what takes seconds at most on an idle machine.
const patience = 10 * time.Minute

// pipeline is both sources and the mirrors, wired as an agent wires them.
type pipeline struct {
	t         *testing.T
	api       *source.API
	manifests *source.Manifests
	mirrors   *Mirrors
	changes   chan source.Change
}

// startPipeline runs everything as the node user until the returned function is called.
func startPipeline(t *testing.T, client kubernetes.Interface, node string, uid types.UID, dir string) (p *pipeline, stop func()) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	p = &pipeline{t: t, changes: make(chan source.Change, 1000)} // more than any test makes
	handle := source.Serial(func(c source.Change) {
		p.mirrors.Observe(c)
		p.changes <- c
	})
	var err error
	if p.mirrors, err = New(Options{Client: client, NodeName: node, NodeUID: func() types.UID { return uid }, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	if p.api, err = source.NewAPI(source.APIOptions{Client: client, NodeName: node, Handle: handle, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	if p.manifests, err = source.NewManifests(source.ManifestsOptions{Directory: dir, NodeName: node, Handle: handle, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{p.api.Run, p.manifests.Run, p.mirrors.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("Run returned %v, want nil", err)
			}
		})
	}
	return p, func() { cancel(); running.Wait() }
}

// await reads changes until one is of that kind and tells of the pod.
func (p *pipeline) await(origin source.Origin, op source.Op, name string) *v1.Pod {
	p.t.Helper()
	var found *v1.Pod
	p.awaitChange(fmt.Sprintf("%s of pod %s by the %s source", op, name, origin), func(c source.Change) bool {
		if c.Origin != origin || c.Op != op {
			return false
		}
		i := slices.IndexFunc(c.Pods, func(pod *v1.Pod) bool { return pod.Name == name })
		if i >= 0 {
			found = c.Pods[i]
		}
		return i >= 0
	})
	return found
}

// awaitChange reads changes until one is wanted. A failure says what was waited for.
func (p *pipeline) awaitChange(what string, wanted func(source.Change) bool) source.Change {
	p.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case c := <-p.changes:
			if wanted(c) {
				return c
			}
		case <-timeout:
			p.t.Fatalf("waited %s for a change: %s; the API source says %v", patience, what, p.api.Err())
		}
	}
}

// awaitPod watches a namespace as an administrator until the pod is as wanted; nil stands
// for a pod that is gone. A failure says what was waited for.
func (p *pipeline) awaitPod(admin kubernetes.Interface, namespace, name, what string, wanted func(*v1.Pod) bool) *v1.Pod {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	list, err := admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		p.t.Fatalf("waiting for %s: list pods: %v", what, err)
	}
	var now *v1.Pod
	for i := range list.Items {
		if list.Items[i].Name == name {
			now = &list.Items[i]
		}
	}
	if wanted(now) {
		return now
	}
	w, err := admin.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		p.t.Fatalf("waiting for %s: watch pods: %v", what, err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		pod, ok := event.Object.(*v1.Pod)
		if !ok || pod.Name != name {
			continue
		}
		if now = pod; event.Type == watch.Deleted {
			now = nil
		}
		if wanted(now) {
			return now
		}
	}
	p.t.Fatalf("waited for %s until the watch ended (%v); got %s; mirrors pending: %v", what, ctx.Err(), seen(now), p.mirrors.Pending())
	return nil
}

func seen(pod *v1.Pod) string {
	if pod == nil {
		return "no pod"
	}
	return fmt.Sprintf("pod %s, UID %s, image %s, deletion %v", pod.Name, pod.UID, pod.Spec.Containers[0].Image, pod.DeletionTimestamp)
}

func manifestIn(namespace, name, image string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec:\n  containers:\n" +
		"  - {name: c, image: " + image + ", ports: [{containerPort: 80}], readinessProbe: {httpGet: {port: 80}}, resources: {limits: {cpu: 100m}}}\n" +
		"  volumes: [{name: scratch}, {name: logs, hostPath: {path: /var/log}}]\n"
}

func nodeUID(t *testing.T, admin kubernetes.Interface, name string) types.UID {
	t.Helper()
	node, err := admin.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node.UID
}

func TestMirrorsOnARealServer(t *testing.T) {
	server := shared.Server(t)
	const node = "source-mirrors"
	client, admin, namespace := server.Node(t, node), server.Admin(), server.Namespace(t)
	uid := nodeUID(t, admin, node)
	dir := t.TempDir()
	file := filepath.Join(dir, "web.yaml")
	write := func(image string) {
		if err := os.WriteFile(file, []byte(manifestIn(namespace, "web", image)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("v1")
	p, stop := startPipeline(t, client, node, uid, dir)
	mirrors := func(image string) func(*v1.Pod) bool {
		return func(pod *v1.Pod) bool {
			return pod != nil && pod.DeletionTimestamp == nil && podstatus.IsMirror(pod) && pod.Spec.Containers[0].Image == image
		}
	}
	name := "web-" + node
	v1mirror := p.awaitPod(admin, namespace, name, "the mirror of v1", mirrors("v1"))
	if owner := v1mirror.OwnerReferences; len(owner) != 1 || owner[0].UID != uid {
		t.Errorf("owners %v, want the node", owner)
	}
	if v1mirror.Annotations[v1.MirrorPodAnnotationKey] != v1mirror.Annotations[podstatus.HashAnnotation] || v1mirror.Annotations[podstatus.SourceAnnotation] != "file" {
		t.Errorf("annotations %v, want those of a mirror", v1mirror.Annotations)
	}
	sameSpec(t, p.await(source.FromFile, source.Set, name), v1mirror)

	write("v2") // an edit
	v2mirror := p.awaitPod(admin, namespace, name, "the mirror of v2 after the edit", mirrors("v2"))
	if v2mirror.UID == v1mirror.UID {
		t.Error("the mirror was changed instead of replaced: its status would be that of another pod")
	}

	// kubectl delete, gracefully and by force: the mirror comes back.
	if err := admin.CoreV1().Pods(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	again := p.awaitPod(admin, namespace, name, "another mirror after a graceful delete", func(pod *v1.Pod) bool { return mirrors("v2")(pod) && pod.UID != v2mirror.UID })
	if err := admin.CoreV1().Pods(namespace).Delete(t.Context(), name, *metav1.NewDeleteOptions(0)); err != nil {
		t.Fatal(err)
	}
	p.awaitPod(admin, namespace, name, "another mirror after a delete by force", func(pod *v1.Pod) bool { return mirrors("v2")(pod) && pod.UID != again.UID })

	// The manifest goes while statusd is away: the next one removes the mirror.
	stop()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.awaitPod(admin, namespace, name, "the mirror that is left behind", mirrors("v2"))
	p, stop = startPipeline(t, client, node, uid, dir)
	defer stop()
	p.awaitPod(admin, namespace, name, "the end of the orphaned mirror", func(pod *v1.Pod) bool { return pod == nil })
}

// The server is killed and comes back. Meanwhile a manifest changes and another comes;
// afterwards everything is as it should be, without another event. The node's requests
// arrive as soon as the server listens, in many runs before its admission knows its pods.
func TestSourcesConvergeAfterTheServerWasKilled(t *testing.T) {
	server := controlplanetest.Start(t)
	const node = "source-outage"
	client, admin, namespace := server.Node(t, node), server.Admin(), server.Namespace(t)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "web.yaml"), manifestIn(namespace, "web", "v1"))
	p, stop := startPipeline(t, client, node, nodeUID(t, admin, node), dir)
	defer stop()
	before := p.awaitPod(admin, namespace, "web-"+node, "the mirror of web v1", func(pod *v1.Pod) bool { return pod != nil })

	server.Kill(t)
	writeFile(t, filepath.Join(dir, "web.yaml"), manifestIn(namespace, "web", "v2"))
	writeFile(t, filepath.Join(dir, "db.yaml"), manifestIn(namespace, "db", "v1"))
	p.await(source.FromFile, source.Update, "web-"+node)
	server.Restart(t)

	p.awaitPod(admin, namespace, "web-"+node, "the mirror of web v2", func(pod *v1.Pod) bool {
		return pod != nil && pod.UID != before.UID && pod.Spec.Containers[0].Image == "v2"
	})
	p.awaitPod(admin, namespace, "db-"+node, "the mirror of db", func(pod *v1.Pod) bool { return pod != nil })
	created := server.CreatePod(t, controlplanetest.Pod(namespace, "late", node))
	if got := p.await(source.FromAPI, source.Update, "late"); got.UID != created.UID {
		t.Errorf("after the outage: got UID %s, want %s", got.UID, created.UID)
	}
}

// sameSpec checks that our defaults are those of the server, so that mirror and static pod agree.
func sameSpec(t *testing.T, static, mirror *v1.Pod) {
	t.Helper()
	got, want := static.Spec.DeepCopy(), mirror.Spec.DeepCopy()
	// What admission adds to every pod of a cluster is not a default of the pod.
	want.Priority, want.PreemptionPolicy = got.Priority, got.PreemptionPolicy
	want.Tolerations = got.Tolerations
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("defaults differ from the server's:\n got %+v\nwant %+v", got, want)
	}
}

// The rules of package manifest are the server's: what we refuse, it refuses too.
func TestServerRefusesMirrorsThatReferenceObjects(t *testing.T) {
	server := shared.Server(t)
	const node = "source-references"
	client, namespace := server.Node(t, node), server.Namespace(t)
	uid := nodeUID(t, server.Admin(), node)
	awaitAdmission(t, client, namespace, node, uid)
	for name, alter := range map[string]func(*v1.PodSpec){
		"service account": func(s *v1.PodSpec) { s.ServiceAccountName = "default" },
		"pull secret":     func(s *v1.PodSpec) { s.ImagePullSecrets = []v1.LocalObjectReference{{Name: "s"}} },
		"secret volume": func(s *v1.PodSpec) {
			s.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "s"}}}}
		},
		"config map volume": func(s *v1.PodSpec) {
			s.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "c"}}}}}
		},
		"claim": func(s *v1.PodSpec) {
			s.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
		},
		"secret in the environment": func(s *v1.PodSpec) {
			s.Containers[0].EnvFrom = []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "s"}}}}
		},
	} {
		defined, problems := manifest.Decode("f", []byte(manifestIn(namespace, "web", "host")), node)
		if len(defined) != 1 {
			t.Fatalf("the manifest is refused: %v", problems)
		}
		static := defined[0].Pod
		static.Spec.Volumes = nil
		alter(&static.Spec)
		if !refersToObjects(t, static.Spec, node) {
			t.Errorf("%s: we do not refuse it", name)
		}
		_, err := client.CoreV1().Pods(namespace).Create(t.Context(), podFor(static, node, uid), metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: the server says %v, want that it is forbidden", name, err)
		}
	}
}

// awaitAdmission returns when a mirror without references is admitted. NodeRestriction looks nodes up in a cache of
// its own, and answers that there is no such node until it knows a new one.
func awaitAdmission(t *testing.T, client kubernetes.Interface, namespace, node string, uid types.UID) {
	t.Helper()
	defined, problems := manifest.Decode("f", []byte(manifestIn(namespace, "plain", "host")), node)
	if len(defined) != 1 {
		t.Fatalf("the manifest is refused: %v", problems)
	}
	for {
		_, err := client.CoreV1().Pods(namespace).Create(t.Context(), podFor(defined[0].Pod, node, uid), metav1.CreateOptions{})
		if err == nil {
			return
		}
		if !apierrors.IsNotFound(err) {
			t.Fatalf("a mirror without references: %v", err)
		}
	}
}

// refersToObjects reports whether a manifest with this spec is refused because of its references.
func refersToObjects(t *testing.T, spec v1.PodSpec, node string) bool {
	t.Helper()
	data, err := json.Marshal(v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	_, problems := manifest.Decode("f", data, node)
	return slices.ContainsFunc(problems, func(p manifest.Problem) bool { return strings.Contains(p.Reason, "may not reference") })
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
