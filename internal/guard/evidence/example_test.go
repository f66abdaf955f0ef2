package evidence_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/guard/evidence"
)

func Example() {
	dir, err := os.MkdirTemp("", "guard")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	store, err := evidence.New(evidence.Options{Dir: dir, Parts: []evidence.Part{evidence.JSON("audit.json", func() any { return "no drift" })}})
	if err != nil {
		panic(err)
	}
	kept, err := store.Keep(context.Background(), guard.Case{At: time.Unix(1700000000, 0), Target: guard.TargetKubelet, Reason: guard.ProcessGone})
	fmt.Println(filepath.Base(kept), err)
	// Output: 20231114T221320.000Z-kubelet-ProcessGone <nil>
}
