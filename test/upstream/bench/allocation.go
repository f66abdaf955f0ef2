package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	kubestate "k8s.io/kubernetes/pkg/kubelet/allocation/state"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
)

// allocationScenarios measure one stored allocation with ever more pods stored.
func allocationScenarios() []scenario {
	var list []scenario
	for _, n := range []int{10, 100, 1000} {
		list = append(list, scenario{
			yields: []yield{{fmt.Sprintf("allocation_%d", n), "µs"}},
			sides:  managers,
			measure: func(_ context.Context, lab *lab, s side) ([]float64, error) {
				return measureAllocation(lab, s, n)
			},
		})
	}
	return list
}

// store keeps the resources of a pod's container on disk.
type store interface {
	set(types.UID, v1.ResourceRequirements) error
	close() error
}

func measureAllocation(lab *lab, s side, n int) (_ []float64, err error) {
	dir, err := os.MkdirTemp(lab.workDir, "allocation-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var st store
	if s == statusd {
		st, err = newOurStore(dir)
	} else {
		st, err = newTheirStore(dir)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := st.close(); err == nil {
			err = closeErr
		}
	}()
	pods := knownPods(n)
	for _, pod := range pods {
		if err := st.set(pod.UID, resources("500m")); err != nil {
			return nil, err
		}
	}
	change := [2]v1.ResourceRequirements{resources("600m"), resources("700m")}
	ns := timed(alternating(func(i int) {
		if setErr := st.set(pods[n/2].UID, change[i]); setErr != nil {
			err = setErr
		}
	}))[0]
	return []float64{ns / 1e3}, err
}

func resources(cpu string) v1.ResourceRequirements {
	list := v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("256Mi")}
	return v1.ResourceRequirements{Limits: list, Requests: list}
}

type ourStore struct{ *journal.Durable }

func newOurStore(dir string) (store, error) {
	j, err := journal.Open(filepath.Join(dir, "journal"), journal.Options{NodeName: nodeName})
	return ourStore{j}, err
}

func (s ourStore) set(uid types.UID, r v1.ResourceRequirements) error {
	return s.SetPodAllocation(uid, podstatus.Allocation{Containers: map[string]v1.ResourceRequirements{containerName: r}})
}

func (s ourStore) close() error { return s.Close() }

type theirStore struct{ kubestate.State }

func newTheirStore(dir string) (store, error) {
	s, err := kubestate.NewStateCheckpoint(dir, "allocated_pods_state")
	return theirStore{s}, err
}

func (s theirStore) set(uid types.UID, r v1.ResourceRequirements) error {
	return s.SetPodResourceInfo(klog.Background(), uid, kubestate.PodResourceInfo{ContainerResources: map[string]v1.ResourceRequirements{containerName: r}})
}

func (s theirStore) close() error { return nil }
