package kubeletstate_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/journal/journaltest"
	"github.com/statusd/statusd/journal/kubeletstate"
	"github.com/statusd/statusd/podstatus"
)

// requests of a container with a quarter of a CPU and 1.5 GiB.
func requests() v1.ResourceRequirements {
	return v1.ResourceRequirements{Requests: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("250m"), v1.ResourceMemory: resource.MustParse("1536Mi")}}
}

func withLimits() v1.ResourceRequirements {
	r := requests()
	r.Limits = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	return r
}

type checkpointFile struct {
	file       string
	generation kubeletstate.Generation
	verified   bool
	pods       map[types.UID]podstatus.Allocation
	statuses   map[types.UID]journal.ResizeStatus
}

func one(container string, r v1.ResourceRequirements) podstatus.Allocation {
	return podstatus.Allocation{Containers: map[string]v1.ResourceRequirements{container: r}}
}

func checkpointFiles() []checkpointFile {
	podLevel := withLimits()
	return []checkpointFile{
		{"1.27-pod_status_manager_state", kubeletstate.Generation127, false,
			map[types.UID]podstatus.Allocation{"pod-a": one("app", requests())},
			map[types.UID]journal.ResizeStatus{"pod-a": v1.PodResizeStatusDeferred}},
		{"1.32-allocated_pods_state-requests", kubeletstate.Generation132, true,
			map[types.UID]podstatus.Allocation{"pod-a": one("app", requests())},
			map[types.UID]journal.ResizeStatus{"pod-a": v1.PodResizeStatusInProgress}},
		{"1.32-allocated_pods_state", kubeletstate.Generation132, true,
			map[types.UID]podstatus.Allocation{"pod-a": one("app", withLimits())}, nil},
		{"1.33-allocated_pods_state", kubeletstate.Generation133, true,
			map[types.UID]podstatus.Allocation{
				"pod-a": one("app", withLimits()),
				"pod-b": {Containers: map[string]v1.ResourceRequirements{"app": requests()}, PodLevel: &podLevel},
			}, nil},
	}
}

func TestImport_EachGeneration(t *testing.T) {
	for _, f := range checkpointFiles() {
		t.Run(f.file, func(t *testing.T) {
			j := journal.NewMemory()
			got, err := kubeletstate.Import(j, filepath.Join("testdata", f.file))
			if err != nil {
				t.Fatal(err)
			}
			if got.Generation != f.generation || got.Verified != f.verified {
				t.Errorf("got generation %s, verified %t; want %s, %t", got.Generation, got.Verified, f.generation, f.verified)
			}
			want := journaltest.State{Allocations: f.pods, ResizeStatuses: f.statuses}
			if have := journaltest.Read(j); !journaltest.Equal(have, want) {
				t.Errorf("the journal after the import:\n got %+v\nwant %+v", have, want)
			}
		})
	}
}

func TestImport_KeepsWhatTheJournalKnows(t *testing.T) {
	j := journal.NewMemory()
	if err := j.SetPodAllocation("pod-a", journaltest.Allocation(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := kubeletstate.Import(j, "testdata/1.33-allocated_pods_state"); err != nil {
		t.Fatal(err)
	}
	if got, _ := j.GetPodAllocation("pod-a"); !journaltest.Equal(got, journaltest.Allocation(1)) {
		t.Errorf("the import overwrote pod-a, which the journal knew: got %+v", got)
	}
	if _, ok := j.GetPodAllocation("pod-b"); !ok {
		t.Error("the import left out pod-b, which the journal did not know")
	}
}

// Every cut of every file, and every flipped byte of the files with a checksum that can be
// checked, is refused or still means the same.
func TestImport_DamageChangesNothing(t *testing.T) {
	for _, f := range checkpointFiles() {
		t.Run(f.file, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join("testdata", f.file))
			if err != nil {
				t.Fatal(err)
			}
			content = []byte(strings.TrimSpace(string(content)))
			for length := range content {
				refuse(t, fmt.Sprintf("cut to %d bytes", length), content[:length])
			}
			if !f.verified {
				return
			}
			for i := range content {
				flipped := append([]byte{}, content...)
				flipped[i] ^= 0x01
				got, err := kubeletstate.Read(strings.NewReader(string(flipped)))
				if err == nil && !journaltest.Equal(got.Allocations, f.pods) {
					t.Errorf("byte %d flipped: read without an error as %+v", i, got)
				}
			}
		})
	}
}

func TestImport_RefusesWhatIsNoCheckpoint(t *testing.T) {
	for _, text := range []string{
		``, `null`, `[]`, `{}`, `{"checksum":1,"policyName":"static"}`, `{"data":"{}"}`,
		`{"data":"{}","checksum":1}`, `{"allocationEntries":{"a":{"c":{"cpu":"much"}}},"checksum":1}`,
		sealed(`{"entries":7}`), sealed(`{"allocationEntries":{"a":{"c":{"cpu":"much"}}}}`),
	} {
		refuse(t, text, []byte(text))
	}
}

// sealed puts text under the checksum that a kubelet would compute for it.
func sealed(text string) string {
	h := fnv.New32a()
	fmt.Fprintf(h, "(string)%s", text)
	return fmt.Sprintf(`{"data":%q,"checksum":%d}`, text, h.Sum32())
}

func refuse(t *testing.T, story string, content []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "checkpoint")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	j := journal.NewMemory()
	if _, err := kubeletstate.Import(j, path); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("%s: got %v, want ErrDamaged", story, err)
	}
	if got := journaltest.Read(j); !journaltest.Equal(got, journaltest.State{}) {
		t.Errorf("%s: a refused file changed the journal: %+v", story, got)
	}
}
