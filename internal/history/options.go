package history

import (
	"cmp"
	"log/slog"
	"time"
)

// Options configure a [Store]. The zero value works, without a file.
type Options struct {
	// PerPod is how many records a pod keeps, 100 if zero; the node itself keeps four times as many.
	PerPod int
	// Total is how many records all pods keep together, 20,000 if zero. Each existing pod keeps two,
	// whatever Total is.
	Total int
	// Keep is how long a pod that is gone stays, an hour if zero.
	Keep time.Duration
	// File is where the history survives a restart. Empty: it does not.
	File string
	// FileSize is how large the file may grow before it is rewritten, 16 MiB if zero.
	FileSize int64
	// Batch is how many changes may wait for [Store.Run], 4096 if zero.
	Batch int
	// Delay is how long changes are collected before they are written to the file, 50 ms if zero.
	Delay  time.Duration
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	o.PerPod = max(cmp.Or(o.PerPod, 100), 2)
	o.Total = cmp.Or(o.Total, 20_000)
	o.Keep = cmp.Or(o.Keep, time.Hour)
	o.FileSize = cmp.Or(o.FileSize, 16<<20)
	o.Batch = cmp.Or(o.Batch, 4096)
	o.Delay = cmp.Or(o.Delay, 50*time.Millisecond)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
}
