package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func ptr[T any](value T) *T { return &value }

func asUser(uid int64) *v1.SecurityContext { return &v1.SecurityContext{RunAsUser: &uid} }

func withGroup(gid *int64) *v1.PodSecurityContext { return &v1.PodSecurityContext{FSGroup: gid} }

func ids(info fs.FileInfo) [2]uint32 {
	stat := info.Sys().(*syscall.Stat_t)
	return [2]uint32{stat.Uid, stat.Gid}
}

// server is an API server with two objects.
type server struct {
	settings *v1.ConfigMap
	keys     *v1.Secret
	requests []authenticationv1.TokenRequest
	granted  int64 // lifetime of tokens
	broken   error
}

func newServer() *server {
	return &server{
		settings: &v1.ConfigMap{Data: map[string]string{"greeting": "hello"}, BinaryData: map[string][]byte{"logo": {0, 1}}},
		keys:     &v1.Secret{Data: map[string][]byte{"password": []byte("one")}},
		granted:  3600,
	}
}

func (s *server) ConfigMap(_ context.Context, _, name string) (*v1.ConfigMap, error) {
	if name != "settings" || s.settings == nil {
		return nil, errors.Join(ErrNotFound, s.broken)
	}
	return s.settings, s.broken
}

func (s *server) Secret(_ context.Context, _, name string) (*v1.Secret, error) {
	if name != "keys" || s.keys == nil {
		return nil, errors.Join(ErrNotFound, s.broken)
	}
	return s.keys, s.broken
}

func (s *server) Token(_ context.Context, namespace, account string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	if s.broken != nil {
		return nil, s.broken
	}
	s.requests = append(s.requests, *request)
	answer := request.DeepCopy()
	answer.Spec.ExpirationSeconds = &s.granted
	answer.Status.Token = fmt.Sprintf("%s/%s %d", namespace, account, len(s.requests))
	return answer, nil
}

func (s *server) Follow(types.UID, []Reference, func()) {}

// contentsOf makes the contents of a pod with these volumes, and tells where they are.
func contentsOf(t *testing.T, s *server, volumes ...v1.Volume) (*Contents, *v1.Pod, string) {
	t.Helper()
	dir := t.TempDir()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "uid", Labels: map[string]string{"app": "web"}}}
	pod.Spec.Volumes, pod.Spec.Containers = volumes, []v1.Container{{Name: "main"}}
	options := Options{
		Dir:    func(name string) string { return filepath.Join(dir, name) },
		Fields: func(pod *v1.Pod) Fields { return Fields{Pod: pod} },
	}
	if s != nil {
		options.Objects = s
	}
	return NewContents(pod, options), pod, dir
}

func configMap(source v1.ConfigMapVolumeSource) v1.Volume {
	return v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{ConfigMap: &source}}
}

func secret(source v1.SecretVolumeSource) v1.Volume {
	return v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{Secret: &source}}
}

func projected(sources ...v1.VolumeProjection) v1.Volume {
	return v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: sources}}}
}

func named(name string) v1.LocalObjectReference { return v1.LocalObjectReference{Name: name} }

var accessToken = v1.VolumeProjection{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr(int64(3607))}}

func TestFilesOfEachKindOfVolume(t *testing.T) {
	mode := ptr(int32(0o400))
	for story, c := range map[string]struct {
		volume v1.Volume
		want   map[string]string
	}{
		"all keys of a config map": {configMap(v1.ConfigMapVolumeSource{LocalObjectReference: named("settings")}),
			map[string]string{"greeting": "-rw-r--r-- hello", "logo": "-rw-r--r-- \x00\x01"}},
		"items of a config map": {configMap(v1.ConfigMapVolumeSource{LocalObjectReference: named("settings"), DefaultMode: mode,
			Items: []v1.KeyToPath{{Key: "greeting", Path: "a/b"}, {Key: "logo", Path: "logo", Mode: ptr(int32(0o640))}}}),
			map[string]string{"a/b": "-r-------- hello", "logo": "-rw-r----- \x00\x01"}},
		"no items of a config map":    {configMap(v1.ConfigMapVolumeSource{LocalObjectReference: named("settings"), Items: []v1.KeyToPath{}}), map[string]string{}},
		"an optional config map":      {configMap(v1.ConfigMapVolumeSource{LocalObjectReference: named("none"), Optional: ptr(true)}), map[string]string{}},
		"all keys of a secret":        {secret(v1.SecretVolumeSource{SecretName: "keys"}), map[string]string{"password": "-rw-r--r-- one"}},
		"an optional secret":          {secret(v1.SecretVolumeSource{SecretName: "none", Optional: ptr(true)}), map[string]string{}},
		"an optional key of a secret": {secret(v1.SecretVolumeSource{SecretName: "keys", Optional: ptr(true), Items: []v1.KeyToPath{{Key: "none", Path: "x"}}}), map[string]string{}},
		"the downward API": {v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{
			Items: []v1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
				{Path: "cpu", ResourceFieldRef: &v1.ResourceFieldSelector{ContainerName: "main", Resource: "requests.cpu"}}},
		}}}, map[string]string{"labels": `-rw-r--r-- app="web"`, "cpu": "-rw-r--r-- 0"}},
		"a projection of all": {projected(
			v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: named("settings"), Items: []v1.KeyToPath{{Key: "greeting", Path: "both"}}}},
			v1.VolumeProjection{Secret: &v1.SecretProjection{LocalObjectReference: named("keys"), Items: []v1.KeyToPath{{Key: "password", Path: "both"}}}},
			v1.VolumeProjection{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
			accessToken,
		), map[string]string{"both": "-rw-r--r-- one", "namespace": "-rw-r--r-- shop", "token": "-rw------- shop/default 1"}},
	} {
		contents, _, dir := contentsOf(t, newServer(), c.volume)
		if _, err := contents.Refresh(t.Context(), time.Now()); err != nil {
			t.Errorf("%s: %v", story, err)
			continue
		}
		if got := shown(t, filepath.Join(dir, "v")); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v, want %v", story, got, c.want)
		}
	}
}

func TestWhatIsMissingHasTheWordsOfTheKubelet(t *testing.T) {
	items := []v1.KeyToPath{{Key: "none", Path: "x"}}
	for want, volume := range map[string]v1.Volume{
		`configmap "none" not found`:               configMap(v1.ConfigMapVolumeSource{LocalObjectReference: named("none")}),
		`secret "none" not found`:                  secret(v1.SecretVolumeSource{SecretName: "none"}),
		"references non-existent config key: none": configMap(v1.ConfigMapVolumeSource{LocalObjectReference: named("settings"), Items: items}),
		"references non-existent secret key: none": secret(v1.SecretVolumeSource{SecretName: "keys", Items: items}),
		`[configmap "a" not found, secret "b" not found]`: projected(v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: named("a")}},
			v1.VolumeProjection{Secret: &v1.SecretProjection{LocalObjectReference: named("b")}}),
	} {
		contents, _, dir := contentsOf(t, newServer(), volume)
		_, err := contents.Refresh(t.Context(), time.Now())
		failed, ok := errors.AsType[*SetUpError](err)
		if !ok || failed.Volume != "v" || failed.Err.Error() != want {
			t.Errorf("got %v, want volume v: %s", err, want)
		}
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("%s: half a volume was written: %v", want, entries)
		}
	}
}

func TestWithoutAnAPIServerOnlyTheDownwardAPIWorks(t *testing.T) {
	for _, volume := range []v1.Volume{configMap(v1.ConfigMapVolumeSource{}), secret(v1.SecretVolumeSource{}), projected(accessToken)} {
		contents, _, _ := contentsOf(t, nil, volume)
		if _, err := contents.Refresh(t.Context(), time.Now()); !errors.Is(err, errNoObjects) {
			t.Errorf("got %v, want %v", err, errNoObjects)
		}
	}
}

func TestKeysThatLeaveTheVolumeAreRefused(t *testing.T) {
	s := newServer()
	s.settings.Data["../../etc/passwd"] = "root"
	contents, _, dir := contentsOf(t, s, configMap(v1.ConfigMapVolumeSource{LocalObjectReference: named("settings")}))
	if _, err := contents.Refresh(t.Context(), time.Now()); err == nil {
		t.Error("got no error")
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("something was written: %v", entries)
	}
}

func TestAChangedPodReachesTheDownwardAPI(t *testing.T) {
	contents, pod, dir := contentsOf(t, nil, v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{
		Items: []v1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels"}}},
	}}})
	if contents.Update(pod.DeepCopy()) {
		t.Error("the same pod is reported as changed")
	}
	changed := pod.DeepCopy()
	changed.Labels["app"] = "api"
	if !contents.Update(changed) {
		t.Error("a changed label is not reported")
	}
	if _, err := contents.Refresh(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	wantShown(t, filepath.Join(dir, "v"), map[string]string{"labels": `-rw-r--r-- app="api"`})
}

// A token is requested once, bound to the pod, and again when most of its life is over. If that
// fails, the old one stays where it is.
func TestTokensAreRenewedInTime(t *testing.T) {
	s := newServer()
	contents, pod, dir := contentsOf(t, s, projected(accessToken))
	file := filepath.Join(dir, "v", "token")
	now := time.Date(2026, 11, 15, 10, 0, 0, 0, time.UTC)
	refresh := func(after time.Duration, wantToken string) time.Time {
		t.Helper()
		next, err := contents.Refresh(t.Context(), now.Add(after))
		if (err != nil) != (s.broken != nil) {
			t.Fatalf("after %v: %v", after, err)
		}
		if data, _ := os.ReadFile(file); string(data) != wantToken {
			t.Errorf("after %v: the file holds %q, want %q", after, data, wantToken)
		}
		return next
	}
	if next := refresh(0, "shop/default 1"); !next.Equal(now.Add(48 * time.Minute)) {
		t.Errorf("renewal at %v, want it after 80 %% of an hour", next.Sub(now))
	}
	refresh(47*time.Minute, "shop/default 1")
	s.broken = errors.New("server is down")
	refresh(48*time.Minute, "shop/default 1")
	s.broken = nil
	refresh(49*time.Minute, "shop/default 2")
	spec := s.requests[0].Spec
	if len(s.requests) != 2 || spec.BoundObjectRef.UID != pod.UID || spec.BoundObjectRef.Kind != "Pod" || *spec.ExpirationSeconds != 3607 || len(spec.Audiences) > 0 {
		t.Errorf("requests: %+v", s.requests)
	}
}

func TestRenewalSurvivesAbsurdLifetimes(t *testing.T) {
	for granted, want := range map[int64]time.Duration{
		600: 8 * time.Minute, 3600: 48 * time.Minute, 7 * 24 * 3600: 24 * time.Hour,
		0: time.Minute, -5: time.Minute, 1 << 62: 24 * time.Hour, -1 << 62: time.Minute,
	} {
		answer := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &granted}}
		if got := renewAfter(answer); got != want {
			t.Errorf("%d s: renewed after %v, want %v", granted, got, want)
		}
	}
	if got := renewAfter(&authenticationv1.TokenRequest{}); got != 48*time.Minute {
		t.Errorf("no lifetime: renewed after %v", got)
	}
}

func TestReferencesOfAPod(t *testing.T) {
	_, pod, _ := contentsOf(t, nil,
		configMap(v1.ConfigMapVolumeSource{LocalObjectReference: named("a")}),
		secret(v1.SecretVolumeSource{SecretName: "b"}),
		projected(v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: named("a")}}, accessToken))
	want := []Reference{{ConfigMap, "shop", "a"}, {Secret, "shop", "b"}}
	if got := References(pod); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
