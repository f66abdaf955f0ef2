package status

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/statustest"
)

// existing are the pods of the table, as an agent passes them to remove orphans.
func (w *world) existing() map[types.UID]bool {
	keep := map[types.UID]bool{}
	for _, pod := range w.table.All() {
		keep[pod.UID] = true
	}
	return keep
}

// wantEmptyMaps looks into the maps of a struct, or of a pointer to one.
func wantEmptyMaps(t *testing.T, kept any) {
	t.Helper()
	value := reflect.Indirect(reflect.ValueOf(kept))
	for i := range value.NumField() {
		if f := value.Field(i); f.Kind() == reflect.Map && f.Len() > 0 {
			t.Errorf("%T.%s holds %d pods that are gone", kept, value.Type().Field(i).Name, f.Len())
		}
	}
}

func finished(w *world, pod *v1.Pod) {
	w.set(pod, running(pod, true))
	w.api.Change(pod, deleting)
	w.set(pod, ended(pod, 0))
	must(w.manager.TerminatePod(pod))
	synctest.Wait()
}

func forced(w *world, pod *v1.Pod) {
	w.report(pod, running(pod, true))
	w.api.Remove(pod.Namespace, pod.Name)
	w.set(pod, running(pod, false))
}

// replaced has its name taken by another pod, which goes too.
func replaced(w *world, pod *v1.Pod) {
	w.report(pod, running(pod, true))
	w.api.Remove(pod.Namespace, pod.Name)
	next := w.create(pod.Name, restartNever, func(p *v1.Pod) { p.UID = pod.UID + "-next" })
	w.set(pod, ended(pod, 1))
	must(w.manager.TerminatePod(pod))
	finished(w, next)
}

// contested is a pod that a webhook changes with each write.
func contested(w *world, pod *v1.Pod) {
	w.api.SetWebhook(func(p *v1.Pod) { p.Status.Message = "mine" })
	w.set(pod, running(pod, true))
	time.Sleep(time.Second)
	w.api.SetWebhook(nil)
	w.api.Remove(pod.Namespace, pod.Name)
}

// observedOnly was never reported.
func observedOnly(w *world, pod *v1.Pod) {
	w.manager.ObservePod(pod)
	w.api.Remove(pod.Namespace, pod.Name)
}

// failing goes while its requests fail.
func failing(w *world, pod *v1.Pod) {
	w.api.SetFault(func(context.Context, statustest.Request) error { return statustest.ErrRefused })
	w.set(pod, ended(pod, 1))
	time.Sleep(time.Second)
	w.api.Remove(pod.Namespace, pod.Name)
	w.api.SetFault(nil)
}

// mirrored is a static pod beside an ordinary one.
func mirrored(w *world, pod *v1.Pod) {
	static, mirror := w.createStatic(pod.Name + "-static")
	w.set(static, running(static, true))
	synctest.Wait()
	w.set(static, ended(static, 0))
	must(w.manager.TerminatePod(static))
	synctest.Wait()
	w.table.Remove(static)
	w.api.Remove(mirror.Namespace, mirror.Name)
	finished(w, pod)
}
