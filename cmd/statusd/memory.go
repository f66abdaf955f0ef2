package main

import (
	"os"
	"runtime/debug"

	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"
)

// growth is how much the heap of a daemon grows before garbage is collected, in percent. Go's default is 100. A node makes little garbage: the additional
// collections take less than a thousandth of a CPU.
const growth = 50

// gRPC's own pool has no size between 32 KiB and 1 MiB, and a list of the containers of a node is between them.
func init() {
	experimental.SetDefaultBufferPool(mem.NewTieredBufferPool(256, 4<<10, 16<<10, 32<<10, 64<<10, 128<<10, 256<<10, 512<<10, 1<<20))
}

// saveMemory makes the collector of a daemon keep its memory small.
func saveMemory() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(growth)
	}
}
