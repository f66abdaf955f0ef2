package podapi

import (
	"context"
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestOnlyAListWithoutTheUIDConfirmsThatAPodIsGone(t *testing.T) {
	stored := func(uids ...types.UID) *v1.PodList {
		list := &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
		for _, uid := range uids {
			list.Items = append(list.Items, v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: uid}})
		}
		return list
	}
	for name, c := range map[string]struct {
		list *v1.PodList
		err  error
		want string // part of the error; empty: gone
	}{
		"no pod of the name":      {list: stored()},
		"another pod of the name": {list: stored("b")},
		"the pod is there":        {list: stored("a"), want: "although it is there"},
		"a gateway answers":       {list: &v1.PodList{}, want: "not a list"},
		"the list fails":          {list: stored(), err: errors.New("connection refused"), want: "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			err := ConfirmGone(t.Context(), "n", "web", "a", func(_ context.Context, o metav1.ListOptions) (*v1.PodList, error) {
				if want := "metadata.name=web,spec.nodeName=n"; o.FieldSelector != want || o.ResourceVersion != "" {
					t.Errorf("listed with selector %q and version %q, want %q and none: a cache may not answer", o.FieldSelector, o.ResourceVersion, want)
				}
				return c.list, c.err
			})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestOnNodeSelectsTheNodesPods(t *testing.T) {
	if got, want := OnNode("n"), "spec.nodeName=n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
