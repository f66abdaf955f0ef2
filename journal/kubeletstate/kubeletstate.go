package kubeletstate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
)

// Generation is the shape of a kubelet's checkpoint file, by the release that began it.
type Generation string

const (
	// Generation127 is pod_status_manager_state of 1.27: entries and checksum side by side.
	Generation127 Generation = "1.27"
	// Generation132 is allocated_pods_state of 1.32: the entries as text, under a checksum.
	Generation132 Generation = "1.32"
	// Generation133 is allocated_pods_state of 1.33 and later: with pod-level resources.
	Generation133 Generation = "1.33"
)

// Checkpoint is what a kubelet's checkpoint file holds.
type Checkpoint struct {
	Generation Generation
	// Verified reports whether the file's checksum was checked and right. That of Generation127 covers the
	// memory layout of Go values, private caches included, and differs between two
	// writings of the same data; kubelets themselves failed because of it. It is ignored,
	// and the fields are checked strictly instead.
	Verified       bool
	Allocations    map[types.UID]podstatus.Allocation
	ResizeStatuses map[types.UID]journal.ResizeStatus
}

// Import adds the allocations and resize statuses of a kubelet's checkpoint file to
// a journal. Pods that the journal knows already stay as they are. A file that is damaged
// or no checkpoint changes nothing and gives an error that wraps [journal.ErrDamaged].
func Import(into journal.Allocations, path string) (Checkpoint, error) {
	f, err := os.Open(path)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("kubeletstate: import: %w", err)
	}
	defer f.Close()
	checkpoint, err := Read(f)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("kubeletstate: import %s: %w; nothing was imported: delete the file or repair it on the kubelet's side", path, err)
	}
	allocations := maps.Clone(checkpoint.Allocations)
	maps.Copy(allocations, into.AllAllocations())
	if err := into.ReplaceAllocations(allocations); err != nil {
		return Checkpoint{}, err
	}
	statuses := maps.Clone(checkpoint.ResizeStatuses)
	maps.Copy(statuses, into.AllResizeStatuses())
	if err := into.ReplaceResizeStatuses(statuses); err != nil {
		return Checkpoint{}, err
	}
	return checkpoint, nil
}

// Read reads a checkpoint file of any generation.
func Read(r io.Reader) (Checkpoint, error) {
	content, err := io.ReadAll(r)
	if err != nil {
		return Checkpoint{}, err
	}
	var outer struct {
		Data     *string `json:"data"`
		Checksum *uint64 `json:"checksum"`
	}
	if err := json.Unmarshal(content, &outer); err != nil {
		return Checkpoint{}, damaged("not JSON of a checkpoint: %v", err)
	}
	if outer.Checksum == nil {
		return Checkpoint{}, damaged("not a checkpoint, it has no checksum")
	}
	if outer.Data == nil {
		return readPlainEntries(content)
	}
	if got := checksum(*outer.Data); got != *outer.Checksum {
		return Checkpoint{}, damaged("the data has checksum %d and the file says %d", got, *outer.Checksum)
	}
	return readTextEntries([]byte(*outer.Data))
}

// checksum: the kubelet hashes a dump of the value, and the dump of a
// string is its type and the text.
func checksum(data string) uint64 {
	h := fnv.New32a()
	io.WriteString(h, "(string)")
	io.WriteString(h, data)
	return uint64(h.Sum32())
}

// entries are the fields of all generations; unknown ones are for later kubelets.
type entries struct {
	Allocations    map[types.UID]map[string]containerEntry `json:"allocationEntries"`
	ResizeStatuses map[types.UID]journal.ResizeStatus      `json:"resizeStatusEntries"`
	Pods           map[types.UID]podEntry                  `json:"entries"`
}

type podEntry struct {
	ContainerResources map[string]v1.ResourceRequirements
	PodLevelResources  *v1.ResourceRequirements
}

func readPlainEntries(content []byte) (Checkpoint, error) {
	var plain struct {
		Allocations    map[types.UID]map[string]v1.ResourceList `json:"allocationEntries"`
		ResizeStatuses map[types.UID]journal.ResizeStatus       `json:"resizeStatusEntries"`
		Checksum       uint64                                   `json:"checksum"`
	}
	strict := json.NewDecoder(bytes.NewReader(content))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&plain); err != nil {
		return Checkpoint{}, damaged("entries: %v", err)
	}
	c := newCheckpoint(Generation127, plain.ResizeStatuses)
	for uid, containers := range plain.Allocations {
		c.Allocations[uid] = podstatus.Allocation{Containers: map[string]v1.ResourceRequirements{}}
		for name, requests := range containers {
			c.Allocations[uid].Containers[name] = v1.ResourceRequirements{Requests: requests}
		}
	}
	return c, nil
}

func readTextEntries(data []byte) (Checkpoint, error) {
	var text entries
	if err := json.Unmarshal(data, &text); err != nil {
		return Checkpoint{}, damaged("data: %v", err)
	}
	c := newCheckpoint(Generation133, text.ResizeStatuses)
	c.Verified = true
	if text.Allocations != nil {
		c.Generation = Generation132
	}
	for uid, containers := range text.Allocations {
		c.Allocations[uid] = podstatus.Allocation{Containers: map[string]v1.ResourceRequirements{}}
		for name, resources := range containers {
			c.Allocations[uid].Containers[name] = v1.ResourceRequirements(resources)
		}
	}
	for uid, pod := range text.Pods {
		c.Allocations[uid] = podstatus.Allocation{Containers: pod.ContainerResources, PodLevel: pod.PodLevelResources}
	}
	return c, nil
}

func newCheckpoint(g Generation, statuses map[types.UID]journal.ResizeStatus) Checkpoint {
	if statuses == nil {
		statuses = map[types.UID]journal.ResizeStatus{}
	}
	return Checkpoint{Generation: g, Allocations: map[types.UID]podstatus.Allocation{}, ResizeStatuses: statuses}
}

// containerEntry is a container of Generation132. The first kubelets of it stored the
// requests alone, later ones requests and limits, and no version tells them apart.
type containerEntry v1.ResourceRequirements

func (c *containerEntry) UnmarshalJSON(data []byte) error {
	var shape map[string]json.RawMessage
	if err := json.Unmarshal(data, &shape); err != nil {
		return err
	}
	for _, field := range []string{"requests", "limits", "claims"} {
		if value := bytes.TrimSpace(shape[field]); len(value) > 0 && (value[0] == '{' || value[0] == '[') {
			return json.Unmarshal(data, (*v1.ResourceRequirements)(c))
		}
	}
	return json.Unmarshal(data, &c.Requests)
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", journal.ErrDamaged, fmt.Sprintf(format, args...))
}
