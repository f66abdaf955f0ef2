package kubeletside

import (
	"hash/maphash"
	"sync"

	v1 "k8s.io/api/core/v1"
)

// decoder decodes pods. A pod whose encoding has not changed since the last answer is not decoded
// again: most pods of most answers.
type decoder struct {
	unmarshal func([]byte, *v1.Pod) error
	seed      maphash.Seed

	mu   sync.Mutex // guards pods
	pods map[fingerprint]*v1.Pod
}

// maxKept bounds how many pods are kept between two lists.
const maxKept = 10_000

// fingerprint identifies an encoding.
type fingerprint struct {
	hash uint64
	size int
}

func newDecoder(unmarshal func([]byte, *v1.Pod) error) *decoder {
	return &decoder{unmarshal: unmarshal, seed: maphash.MakeSeed(), pods: map[fingerprint]*v1.Pod{}}
}

// one decodes a single pod outside a list.
func (d *decoder) one(data []byte) (*v1.Pod, error) {
	key := fingerprint{maphash.Bytes(d.seed, data), len(data)}
	d.mu.Lock()
	defer d.mu.Unlock()
	pod, err := d.decode(key, data)
	if err != nil {
		return nil, err
	}
	if len(d.pods) >= maxKept {
		clear(d.pods) // no list has been answered for long
	}
	d.pods[key] = pod
	return pod, nil
}

// all decodes the pods of a list, and forgets all other pods.
func (d *decoder) all(encoded [][]byte) ([]*v1.Pod, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	pods := make([]*v1.Pod, 0, len(encoded))
	next := make(map[fingerprint]*v1.Pod, len(encoded))
	for _, data := range encoded {
		key := fingerprint{maphash.Bytes(d.seed, data), len(data)}
		pod, err := d.decode(key, data)
		if err != nil {
			return nil, err
		}
		next[key] = pod
		pods = append(pods, pod)
	}
	d.pods = next
	return pods, nil
}

func (d *decoder) decode(key fingerprint, data []byte) (*v1.Pod, error) {
	if pod, ok := d.pods[key]; ok {
		return pod, nil
	}
	pod := &v1.Pod{}
	if err := d.unmarshal(data, pod); err != nil {
		return nil, err
	}
	return pod, nil
}
