package oracle

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"
)

// View is what one side makes of a pod.
type View struct {
	// API is the pod, or the mirror of the static pod, in the API; nil if it is not there,
	// or if the name is another pod's by now.
	API *Object
	// Cached is what the manager says of the pod, nil if nothing.
	Cached *v1.PodStatus
	// Deleted says that the manager has deleted the pod from the API.
	Deleted bool
	// Calls are the answers to the calls since the last comparison.
	Calls []string
	// Resize are the resize conditions that the manager holds.
	Resize []v1.PodCondition
}

// Object is the part of an API pod that is compared.
type Object struct {
	UID         types.UID
	Terminating bool
	Status      v1.PodStatus
}

// view looks at a pod from one side.
func (r *run) view(p *nodePod, i int) *View {
	s := r.sides[i]
	v := &View{Calls: p.calls[i], Deleted: s.server().hasDeleted(p.uid())}
	if pod := s.server().current(p.name); pod != nil && (p.static || pod.UID == p.uid()) {
		v.API = &Object{UID: pod.UID, Terminating: pod.DeletionTimestamp != nil, Status: *pod.Status.DeepCopy()}
	}
	if cached, ok := s.cached(p.uid()); ok {
		v.Cached = cached
	}
	for _, c := range s.resizeConditions(p.uid()) {
		c.LastProbeTime, c.LastTransitionTime = c.LastProbeTime.Rfc3339Copy(), c.LastTransitionTime.Rfc3339Copy()
		v.Resize = append(v.Resize, c)
	}
	return v
}

// compare looks at each pod from both sides, and at statusd's side alone.
func (r *run) compare() {
	for _, p := range r.pods {
		if r.difference = r.lie(p); r.difference != "" {
			return
		}
		k, d := r.view(p, theKubelet), r.view(p, theStatusd)
		if equality.Semantic.DeepEqual(k, d) {
			p.facts = facts{}
			continue
		}
		r.explain(&Case{run: r, Pod: p, Kubelet: k, Statusd: d})
		if !equality.Semantic.DeepEqual(k, d) {
			r.difference = fmt.Sprintf("pod %s (uid %s): kubelet (-) and statusd (+) differ:\n%s\nof which no wanted difference explains:\n%s",
				p.name, p.uid(), diffViews(r.view(p, theKubelet), r.view(p, theStatusd)), diffViews(k, d))
			return
		}
		p.calls = [2][]string{}
	}
}

// explain takes out of both views what differs as wanted.
func (r *run) explain(c *Case) {
	for i := range Wanted {
		rule := &Wanted[i]
		if !rule.Explain(c) {
			continue
		}
		r.wanted[rule.Name]++
	}
}

// diffViews shows what two views differ in, line by line.
func diffViews(k, d *View) string {
	var b strings.Builder
	for line := range strings.Lines(diff.Diff(k, d)) {
		if len(line) > 300 {
			line = line[:300] + "…\n"
		}
		b.WriteString(line)
	}
	return b.String()
}
