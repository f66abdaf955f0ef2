package machineside_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit/machineside"
)

// The directories of pods below a kubelet's root.
func ExampleSide() {
	root, err := os.MkdirTemp("", "kubelet")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	const uid = "0f8fad5b-d9cb-469f-a165-70867728950e"
	for _, dir := range []string{"pods/" + uid, "cgroup/memory"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			fmt.Println(err)
			return
		}
	}

	ctx, cancel := context.WithCancel(context.Background())
	side, err := machineside.New(machineside.Options{
		Node:        "n1",
		KubeletRoot: root,
		CgroupRoot:  filepath.Join(root, "cgroup"), // /sys/fs/cgroup, if it is not an example
		Changed: func(changed types.UID) {
			if changed == uid {
				cancel() // seen
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := side.Run(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for uid := range side.Facts().PodDirs {
		fmt.Println(uid)
	}
	// Output: 0f8fad5b-d9cb-469f-a165-70867728950e
}
