package pods

import (
	"fmt"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/podstatus"
)

func pod(name string, uid types.UID, annotations ...string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid, Annotations: map[string]string{}}}
	for _, a := range annotations {
		p.Annotations[a] = "file"
	}
	return p
}

func static(name string, uid types.UID) *v1.Pod {
	return pod(name, uid, "kubernetes.io/config.source")
}

func mirror(name string, uid types.UID) *v1.Pod {
	return pod(name, uid, "kubernetes.io/config.source", "kubernetes.io/config.mirror")
}

func TestPodsAreFoundByUID(t *testing.T) {
	table := New()
	web := pod("web", "1")
	table.Set(web)
	if got, ok := table.ByUID("1"); !ok || got != web {
		t.Errorf("ByUID: %v, %v", got, ok)
	}
	newer := pod("web", "1")
	table.Set(newer)
	if got, _ := table.ByUID("1"); got != newer {
		t.Error("an update did not replace the pod")
	}
	table.Remove(web)
	if _, ok := table.ByUID("1"); ok {
		t.Error("the removed pod is found by UID")
	}
	if len(table.podsByName) > 0 {
		t.Error("the name of the removed pod is kept")
	}
}

func TestStaticAndMirrorAreTranslatedBothWays(t *testing.T) {
	table := New()
	etcd, shadow := static("etcd", "static"), mirror("etcd", "mirror")
	table.Set(shadow)
	if got := table.TranslateUID("mirror"); got != "mirror" {
		t.Errorf("a mirror without its static pod translates to %s", got)
	}
	table.Set(etcd)
	if got := table.TranslateUID("mirror"); got != "static" {
		t.Errorf("the mirror translates to %s, want the static pod's UID", got)
	}
	if got := table.TranslateUID("static"); got != "static" {
		t.Errorf("the static pod translates to %s", got)
	}
	if got, ok := table.MirrorOf(etcd); !ok || got != shadow {
		t.Errorf("MirrorOf: %v, %v", got, ok)
	}
	if _, ok := table.ByUID("mirror"); ok {
		t.Error("a mirror is found as a pod")
	}
}

func TestAMirrorThatChangesItsUID(t *testing.T) {
	table := New()
	etcd, first, second := static("etcd", "static"), mirror("etcd", "first"), mirror("etcd", "second")
	table.Set(etcd)
	table.Set(first)
	table.Set(second)
	if got, _ := table.MirrorOf(etcd); got != second {
		t.Errorf("the mirror is %v, want the newer one", got.UID)
	}
	table.Remove(first) // its deletion arrives late
	if got, ok := table.MirrorOf(etcd); !ok || got != second {
		t.Error("the late removal of the first mirror took the second one away")
	}
	if got := table.TranslateUID("second"); got != "static" {
		t.Errorf("the second mirror translates to %s", got)
	}
}

// An edited manifest makes another static pod of the same name while the old one still ends.
func TestAMirrorIsThatOfOneStaticPodOnly(t *testing.T) {
	table := New()
	old, edited := static("etcd", "old"), static("etcd", "edited")
	shadow := mirror("etcd", "mirror")
	shadow.Annotations[v1.MirrorPodAnnotationKey] = "old"
	owns := func(when string, want, other *v1.Pod) {
		t.Helper()
		if got, ok := table.MirrorOf(want); !ok || got.UID != "mirror" {
			t.Errorf("%s: the mirror of %s: got %v, %v", when, want.UID, got, ok)
		}
		if got, ok := table.MirrorOf(other); ok {
			t.Errorf("%s: %s has the mirror %s too, so that two pods write to it", when, other.UID, got.UID)
		}
		if got := table.TranslateUID("mirror"); got != want.UID {
			t.Errorf("%s: the mirror translates to %s, want %s", when, got, want.UID)
		}
	}
	table.Set(old)
	table.Set(shadow)
	table.Set(edited)
	owns("the mirror carries the hash of the old pod", old, edited)

	shadow = mirror("etcd", "mirror")
	shadow.Annotations[v1.MirrorPodAnnotationKey] = "edited"
	table.Set(shadow)
	owns("the mirror carries the hash of the edited pod", edited, old)

	shadow = mirror("etcd", "mirror")
	table.Set(shadow)
	owns("the mirror carries the hash of neither", edited, old)

	table.Remove(old)
	owns("the old pod is gone", edited, old)
}

func TestAPodOfTheAPIHasNoMirror(t *testing.T) {
	table := New()
	web := static("web", "1") // the annotation, which any user may set
	web.ResourceVersion = "7"
	table.Set(web)
	table.Set(mirror("web", "mirror")) // the next pod of that name is a mirror
	if got := table.TranslateUID("mirror"); got != "mirror" {
		t.Errorf("the mirror translates to %s, a pod of the API: its status would go to the mirror", got)
	}
}

func TestAPodThatTerminatesStaysWhenAnotherTakesItsName(t *testing.T) {
	table := New()
	old, fresh := pod("web", "old"), pod("web", "new")
	if got := table.Set(old); got != nil {
		t.Errorf("the first pod of the name displaces %s", got.UID)
	}
	if got := table.Set(fresh); got != old {
		t.Errorf("the newcomer displaces %v, want the old pod", got)
	}
	if _, ok := table.ByUID("old"); !ok {
		t.Error("the old pod is gone although it was not removed")
	}
	table.Remove(old)
	if got := table.Set(pod("web", "third")); got != fresh {
		t.Error("the removal of the old pod took the name from the new one")
	}
}

func TestLists(t *testing.T) {
	table := New()
	for _, p := range []*v1.Pod{pod("b", "2"), pod("a", "1"), mirror("m", "3")} {
		table.Set(p)
	}
	var names []string
	for _, p := range table.All() {
		names = append(names, p.Name)
	}
	for _, p := range table.Mirrors() {
		names = append(names, p.Name)
	}
	if got := fmt.Sprint(names); got != "[a b m]" {
		t.Errorf("pods and mirrors are %s, want [a b m]", got)
	}
}

// The table against a dumb model: a list of the pods set and not removed, newest last.
func TestTableAgreesWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := New()
		var model []*v1.Pod
		remove := func(p *v1.Pod) {
			for i, m := range model {
				if m.UID == p.UID {
					model = append(model[:i:i], model[i+1:]...)
					return
				}
			}
		}
		// newest finds what holds a name: the last one set under it.
		newest := func(name string, isMirror bool) *v1.Pod {
			for i := len(model) - 1; i >= 0; i-- {
				if model[i].Name == name && podstatus.IsMirror(model[i]) == isMirror {
					return model[i]
				}
			}
			return nil
		}
		// behind finds the static pod of a mirror: the one of its hash, or the newest of its name.
		behind := func(m *v1.Pod) *v1.Pod {
			for _, s := range model {
				if !podstatus.IsMirror(s) && s.Name == m.Name && string(s.UID) == m.Annotations[v1.MirrorPodAnnotationKey] {
					return s
				}
			}
			return newest(m.Name, false)
		}
		draw := func() *v1.Pod {
			name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
			uid := types.UID(name + rapid.SampledFrom([]string{"1", "2"}).Draw(t, "uid"))
			if rapid.Bool().Draw(t, "mirror") {
				m := mirror(name, uid+"m")
				m.Annotations[v1.MirrorPodAnnotationKey] = rapid.SampledFrom([]string{"a1", "a2", "b1", "other"}).Draw(t, "hash")
				return m
			}
			return static(name, uid)
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			p := draw()
			// A name is free again only once its holder is removed, so removal in another
			// order than that of arrival is where the model is simpler than the table.
			if rapid.Bool().Draw(t, "set") || newest(p.Name, podstatus.IsMirror(p)) == nil {
				remove(p)
				model = append(model, p)
				table.Set(p)
			} else if held := newest(p.Name, podstatus.IsMirror(p)); held.UID != p.UID {
				remove(p)
				table.Remove(p)
			}
			for _, m := range model {
				if podstatus.IsMirror(m) {
					want := m.UID
					if s := behind(m); s != nil {
						want = s.UID
					}
					if got := table.TranslateUID(m.UID); got != want {
						t.Fatalf("mirror %s translates to %s, want %s", m.UID, got, want)
					}
				} else if got, ok := table.ByUID(m.UID); !ok || got != m {
					t.Fatalf("pod %s is not found by its UID", m.UID)
				}
			}
			for _, name := range []string{"a", "b"} {
				want := newest(name, true)
				for _, uid := range []types.UID{"1", "2"} {
					s := static(name, types.UID(name)+uid)
					got, ok := table.MirrorOf(s)
					owned := want != nil && (behind(want) == nil || behind(want).UID == s.UID)
					if ok != owned || ok && got != want {
						t.Fatalf("the mirror of %s is %v, %t, want %v, %t", s.UID, got, ok, want, owned)
					}
				}
			}
		}
	})
}

func TestTableMayBeUsedFromManyGoroutines(t *testing.T) {
	table := New()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				p := pod(fmt.Sprint(j%5), types.UID(fmt.Sprint(i, j%5)))
				table.Set(p)
				table.ByUID(p.UID)
				table.TranslateUID(p.UID)
				table.All()
				if j%3 == 0 {
					table.Remove(p)
				}
			}
		})
	}
	wg.Wait()
}

// The status of an edited static pod must not be written to the mirror of the version before it,
// which has ended, in the moment until it is replaced.
func TestTheMirrorOfAnOlderVersionIsNotThePods(t *testing.T) {
	table := New()
	edited := static("etcd", "edited")
	edited.Annotations[podstatus.HashAnnotation] = "edited"
	stale := mirror("etcd", "m")
	stale.Annotations[v1.MirrorPodAnnotationKey] = "old"
	table.Set(stale)
	table.Set(edited)
	if got, ok := table.MirrorOf(edited); ok {
		t.Errorf("the pod's mirror is %v, want none: it carries the hash of another version", got)
	}
	if got := table.TranslateUID("m"); got != "m" {
		t.Errorf("the mirror stands for %s, want no pod", got)
	}
	current := stale.DeepCopy()
	current.Annotations[v1.MirrorPodAnnotationKey] = "edited"
	table.Set(current)
	if _, ok := table.MirrorOf(edited); !ok {
		t.Error("the pod has no mirror, although one carries its hash")
	}
}
