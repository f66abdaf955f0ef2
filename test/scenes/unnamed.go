package scenes

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/statusd/statusd/internal/audit"
)

// kubeletName is the field manager of the kubelet.
const kubeletName = "kubelet"

// asKubelet takes a pod out of its Services under the name of the kubelet.
func asKubelet() Lie {
	lie := podStatusAs(kubeletName, "renamed", `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`)
	return Lie{Name: "Ready False under the kubelet's name", What: "field manager `kubelet`, patched twice a second", Lasts: 75 * time.Second, Expect: audit.ForeignWriter,
		Prepare: withPods("renamed"), Break: lie, Again: lie, Mend: deleting("renamed")}
}

// endedAsKubelet ends a pod whose container runs, under the name of a kubelet that cannot object.
func endedAsKubelet() Lie {
	return Lie{Name: "Succeeded under the kubelet's name", What: "SIGSTOP to the kubelet, then phase Succeeded patched once, field manager `kubelet`", Halts: true, Lasts: time.Minute, Expect: audit.ForeignWriter,
		Prepare: withPods("succeeded"),
		Break: func(ctx context.Context, s *Stage) error {
			if err := s.Node.Kubelet.Process().Pause(ctx); err != nil {
				return err
			}
			return podStatusAs(kubeletName, "succeeded", `{"status":{"phase":"Succeeded"}}`)(ctx, s)
		},
		Mend: func(ctx context.Context, s *Stage) error {
			s.Node.Kubelet.Process().Resume()
			return s.Delete(ctx, "succeeded")
		}}
}

// freezer is a control group of version 1 or 2 in which nothing runs.
const freezer = "statusd-scenes-frozen"

func freezerDir() (dir, file, frozen, thawed string) {
	if dir = filepath.Join("/sys/fs/cgroup/freezer", freezer); exists(filepath.Dir(dir)) {
		return dir, "freezer.state", "FROZEN", "THAWED"
	}
	return filepath.Join("/sys/fs/cgroup", freezer), "cgroup.freeze", "1", "0"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// frozenByGroup freezes the kubelet as systemctl freeze does.
func frozenByGroup() Lie {
	return Lie{Name: "kubelet frozen by its control group", What: "as `systemctl freeze`, then SIGKILL to a container", Halts: true, Lasts: time.Minute, Expect: audit.KubeletBehindRuntime, Prepare: withPods("iced"),
		Break: func(ctx context.Context, s *Stage) error {
			dir, file, frozen, _ := freezerDir()
			pid := []byte(strconv.Itoa(s.Node.Kubelet.Process().PID()))
			if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "cgroup.procs"), pid, 0o644), os.WriteFile(filepath.Join(dir, file), []byte(frozen), 0o644)); err != nil {
				return err
			}
			return s.KillContainer(ctx, "iced")
		},
		Mend: func(ctx context.Context, s *Stage) error {
			dir, file, _, thawed := freezerDir()
			pid := []byte(strconv.Itoa(s.Node.Kubelet.Process().PID()))
			return errors.Join(os.WriteFile(filepath.Join(dir, file), []byte(thawed), 0o644), os.WriteFile(filepath.Join(filepath.Dir(dir), "cgroup.procs"), pid, 0o644),
				os.Remove(dir), s.Delete(ctx, "iced"))
		}}
}
