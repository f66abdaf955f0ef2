package main

import (
	"context"
	"os"
	"runtime/debug"

	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"

	"github.com/statusd/statusd/internal/programpages"
)

// growth is how much the heap of a daemon grows until garbage is collected, in percent. Go's default is 100. A node makes little garbage: to collect it twice as
// often takes less than a thousandth of a CPU.
const growth = 50

// gRPC's own pool has no size between 32 KiB and 1 MiB, and a list of the containers of a node is between them.
func init() {
	experimental.SetDefaultBufferPool(mem.NewTieredBufferPool(256, 4<<10, 16<<10, 32<<10, 64<<10, 128<<10, 256<<10, 512<<10, 1<<20))
}

// saveMemory keeps the memory of a daemon small, until ctx ends.
func saveMemory(ctx context.Context) {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(growth)
	}
	programpages.Keep(ctx)
}
