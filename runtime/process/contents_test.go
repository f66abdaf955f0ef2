package process

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/volume"
	"github.com/statusd/statusd/internal/podvolume"
	"github.com/statusd/statusd/runtime"
)

// fakeObjects is an API server with config maps and secrets of namespace default.
type fakeObjects struct {
	mu      sync.Mutex
	maps    map[string]map[string]string
	secrets map[string]map[string][]byte
	tokens  int   // how many were requested
	broken  error // what every request is answered with
	follows map[types.UID]func()
}

func newFakeObjects() *fakeObjects {
	return &fakeObjects{maps: map[string]map[string]string{}, secrets: map[string]map[string][]byte{}, follows: map[types.UID]func(){}}
}

func (f *fakeObjects) ConfigMap(_ context.Context, namespace, name string) (*v1.ConfigMap, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, found := f.maps[name]
	if f.broken != nil {
		return nil, f.broken
	}
	if !found || namespace != "default" {
		return nil, volume.ErrNotFound
	}
	return &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: maps.Clone(data)}, nil
}

func (f *fakeObjects) Secret(_ context.Context, namespace, name string) (*v1.Secret, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, found := f.secrets[name]
	if f.broken != nil {
		return nil, f.broken
	}
	if !found || namespace != "default" {
		return nil, volume.ErrNotFound
	}
	return &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: maps.Clone(data)}, nil
}

func (f *fakeObjects) Token(_ context.Context, _, account string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return nil, f.broken
	}
	if request.Spec.BoundObjectRef == nil {
		return nil, errors.New("the token is not bound")
	}
	f.tokens++
	answer := request.DeepCopy()
	answer.Status.Token = "token of " + account
	return answer, nil
}

func (f *fakeObjects) Follow(pod types.UID, references []volume.Reference, changed func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.follows[pod] = changed
	if len(references) == 0 {
		delete(f.follows, pod)
	}
}

// requested is how many tokens were.
func (f *fakeObjects) requested() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tokens
}

// change changes something and tells all pods, as a watch does.
func (f *fakeObjects) change(do func()) {
	f.mu.Lock()
	do()
	all := slices.Collect(maps.Values(f.follows))
	f.mu.Unlock()
	for _, changed := range all {
		changed()
	}
}

// contentPod has a config map and a secret as volumes and in its environment.
func contentPod(uid types.UID, script string) *v1.Pod {
	pod := scriptPod(uid, script)
	pod.Spec.Volumes = []v1.Volume{
		{Name: "settings", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}}},
		{Name: "token", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
			{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token"}},
		}}}},
	}
	container0(pod).VolumeMounts = []v1.VolumeMount{
		{Name: "settings", MountPath: "/etc/settings"},
		{Name: "settings", MountPath: "/etc/one", SubPath: "greeting"},
		{Name: "token", MountPath: "/var/run/token", ReadOnly: true},
	}
	return pod
}

func settings(greeting string) *fakeObjects {
	objects := newFakeObjects()
	objects.maps["settings"] = map[string]string{"greeting": greeting}
	objects.secrets["keys"] = map[string][]byte{"password": []byte("one")}
	return objects
}

// A container finds its files, and sees a change without a restart, also when statusd itself
// was restarted in between.
func TestContentsFollowTheirObjects(t *testing.T) {
	h := newHost(t)
	objects := settings("one")
	h.options.Objects = objects
	h.open(t)
	h.start(t, contentPod("pod", `cat $STATUSD_MOUNT_ETC_ONE > `+h.pipe+`; echo > `+h.pipe+`; cat $STATUSD_MOUNT_VAR_RUN_TOKEN/token > `+h.pipe+`; echo > `+h.pipe+`
		for want in two three; do
			until test "$(cat $STATUSD_MOUNT_ETC_SETTINGS/greeting)" = $want; do sleep 0.01; done; echo $want > `+h.pipe+`
		done`))
	for _, want := range []string{"one", "token of default"} {
		if got := h.hear(t); got != want {
			t.Errorf("heard %q, want %q", got, want)
		}
	}
	objects.change(func() { objects.maps["settings"]["greeting"] = "two" })
	if got := h.hear(t); got != "two" {
		t.Errorf("heard %q, want the change", got)
	}
	h.close()
	objects.maps["settings"]["greeting"] = "three" // no one hears of it
	h.open(t)
	if got := h.hear(t); got != "three" {
		t.Errorf("heard %q, want the change during the absence", got)
	}
	h.awaitExit(t, "pod")
	if err := h.RemoveVolumes(t.Context(), "pod"); err != nil {
		t.Fatal(err)
	}
	if len(objects.follows) > 0 {
		t.Errorf("objects of a pod that has ended are still followed: %v", objects.follows)
	}
	h.close()
	h.open(t)
	h.keepAdopted()
	if len(h.keeper.Pods()) > 0 {
		t.Error("volumes that were removed are kept up to date")
	}
}

// removing is an API server with which one pod is removed while another one is taken up.
type removing struct {
	*fakeObjects
	once   sync.Once
	remove func(other types.UID)
}

func (r *removing) Follow(pod types.UID, references []volume.Reference, changed func()) {
	r.fakeObjects.Follow(pod, references, changed)
	r.once.Do(func() { r.remove(map[types.UID]types.UID{"a": "b", "b": "a"}[pod]) })
}

// A pod that is removed while a restarted statusd takes up those with contents is not kept up to date.
func TestAPodThatIsRemovedIsNotTakenUp(t *testing.T) {
	h := newHost(t)
	h.options.Objects = settings("one")
	h.open(t)
	for _, uid := range []types.UID{"a", "b"} {
		if err := h.StartPod(t.Context(), contentPod(uid, "")); err != nil {
			t.Fatal(err)
		}
	}
	h.close()
	h.options.Dir = h.dir
	objects := &removing{fakeObjects: settings("one")}
	h.options.Objects = objects
	rt, err := New(h.options)
	if err != nil {
		t.Fatal(err)
	}
	objects.remove = func(other types.UID) {
		if err := rt.RemovePod(t.Context(), other); err != nil {
			t.Error(err)
		}
	}
	rt.keepAdopted()
	kept := rt.keeper.Pods()
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	if len(kept) != 1 || len(objects.follows) != 1 {
		t.Errorf("%q are kept up to date, %d followed; want the one that was not removed", kept, len(objects.follows))
	}
	h.options.Objects = nil
}

func TestAPodWaitsForItsObjects(t *testing.T) {
	h := newHost(t)
	objects := newFakeObjects()
	h.options.Objects = objects
	h.open(t)
	pod := contentPod("pod", "exit 0")
	pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: "keys", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "keys"}}})
	err := h.StartPod(t.Context(), pod)
	var got []string
	for _, mount := range runtime.MountErrors(err) {
		got = append(got, mount.Error())
	}
	want := []string{
		`MountVolume.SetUp failed for volume "settings" : configmap "settings" not found`,
		`MountVolume.SetUp failed for volume "keys" : secret "keys" not found`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q of %v, want %q", got, err, want)
	}
	if _, err := h.Pod(t.Context(), "pod"); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("got %v, want nothing left of the try", err)
	}
	objects.maps["settings"] = map[string]string{"greeting": "hello"}
	objects.secrets["keys"] = map[string][]byte{}
	h.start(t, pod)
	if c := h.awaitExit(t, "pod"); c.ExitCode != 0 {
		t.Errorf("got %+v", c)
	}
}

func TestEnvironmentFromObjects(t *testing.T) {
	h := newHost(t)
	var events []string
	objects := settings("hello")
	objects.maps["settings"]["STATUSD_CONTAINER_ID"], objects.maps["settings"][""] = "mine", "no name"
	h.options.Objects, h.options.APIServer = objects, "[2001:db8::1]:6443"
	h.options.Event = func(_ *v1.Pod, container, _, reason, message string) {
		events = append(events, container+" "+reason+": "+message)
	}
	h.open(t)
	pod := scriptPod("pod", `echo "$A_greeting $PASSWORD [$OPTIONAL] $NAME $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT $HOSTNAME $STATUSD_CONTAINER_ID" > `+h.pipe)
	c := container0(pod)
	ref, key := v1.LocalObjectReference{Name: "settings"}, v1.LocalObjectReference{Name: "keys"}
	c.EnvFrom = []v1.EnvFromSource{
		{Prefix: "A_", ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: ref}},
		{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: ref}},
		{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "none"}, Optional: ptr(true)}},
	}
	c.Env = []v1.EnvVar{
		{Name: "PASSWORD", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: key, Key: "password"}}},
		{Name: "OPTIONAL", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: ref, Key: "none", Optional: ptr(true)}}},
		{Name: "NAME", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
	}
	id := h.start(t, pod)
	if got, want := h.hear(t), "hello one [] pod 2001:db8::1 6443 pod "+id; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	want := []string{
		`main InvalidEnvironmentVariableNames: Keys [, STATUSD_CONTAINER_ID] from the EnvFrom configMap default/settings were skipped since they are considered invalid environment variable names.`,
	}
	if !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
}

func TestVariablesThatCannotBeHadHaveTheWordsOfTheKubelet(t *testing.T) {
	h := newHost(t)
	h.options.Objects = settings("hello")
	h.open(t)
	ref := func(name string) v1.LocalObjectReference { return v1.LocalObjectReference{Name: name} }
	for want, change := range map[string]func(*v1.Container){
		`configmap "x" not found`: func(c *v1.Container) {
			c.EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: ref("x")}}}
		},
		`secret "y" not found`: func(c *v1.Container) {
			c.Env = []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: ref("y"), Key: "k"}}}}
		},
		`couldn't find key k in ConfigMap default/settings`: func(c *v1.Container) {
			c.Env = []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: ref("settings"), Key: "k"}}}}
		},
		`couldn't find key k in Secret default/keys`: func(c *v1.Container) {
			c.Env = []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: ref("keys"), Key: "k"}}}}
		},
		`failed to expand subPath for volumeMount "data": missing value for "NONE"`: func(c *v1.Container) {
			c.VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data", SubPathExpr: "$(NONE)"}}
		},
	} {
		pod := scriptPod("pod", "exit 0")
		pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
		change(container0(pod))
		if err := h.StartPod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		_, err := h.StartContainer(t.Context(), pod, container0(pod), 0)
		if failed, ok := errors.AsType[*runtime.StartError](err); !ok || failed.Reason != runtime.WaitingConfigError || failed.Error() != want {
			t.Errorf("got %v, want CreateContainerConfigError: %s", err, want)
		}
		if err := h.RemovePod(t.Context(), "pod"); err != nil {
			t.Fatal(err)
		}
	}
}

// A renewal that fails is tried again, and the event says which volume is out of date.
func TestAFailedRefreshIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := settings("one")
		var events []string
		event := func(_ *v1.Pod, _, _, reason, message string) { events = append(events, reason+": "+message) }
		k := podvolume.NewKeeper(objects, event, slog.New(slog.DiscardHandler))
		r := &Runtime{state: &state{}, options: Options{Objects: objects, Addresses: func() []string { return nil }}, keeper: k}
		dir := t.TempDir()
		pod := contentPod("pod", "")
		p := &podPlace{dir: podDir(dir), manifest: pod}
		if err := os.Mkdir(p.dir.volumes(), 0o755); err != nil {
			t.Fatal(err)
		}
		kept, err := r.fill(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		stop := k.Run(t.Context())
		k.Add("pod", kept)
		objects.change(func() { objects.broken = errors.New("server is down") })
		synctest.Wait()
		if want := `FailedMount: MountVolume.SetUp failed for volume "settings" : server is down`; len(events) == 0 || events[0] != want {
			t.Errorf("events %q, want %q", events, want)
		}
		objects.change(func() { objects.broken, objects.maps["settings"]["greeting"] = nil, "two" })
		time.Sleep(podvolume.MaxRetry)
		synctest.Wait()
		if got, err := os.ReadFile(filepath.Join(p.dir.volume("settings"), "greeting")); string(got) != "two" {
			t.Errorf("got %q, %v", got, err)
		}
		before := objects.requested()
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := objects.requested() - before; got != 1 {
			t.Errorf("%d tokens were requested within an hour, want one", got)
		}
		stop()
	})
}

// An API server that has not heard yet that the pod is on this node forbids what the pod refers to.
func TestForbiddenObjectsOfANewPod_AreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := settings("one")
		objects.broken = apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, "default",
			errors.New("node requested token bound to a pod scheduled on a different node"))
		r := &Runtime{state: &state{}, options: Options{Objects: objects, Addresses: func() []string { return nil }}}
		p := &podPlace{dir: podDir(t.TempDir()), manifest: contentPod("pod", "")}
		if err := os.Mkdir(p.dir.volumes(), 0o755); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(podvolume.AuthorizerLag/2, func() { objects.change(func() { objects.broken = nil }) })
		if _, err := r.fill(t.Context(), p); err != nil {
			t.Errorf("got %v, want a second try", err)
		}
	})
}

// podPlace is a pod of the runtime, where pod is one of the API.
type podPlace = pod
