package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/status"
)

// recording is statusd with a history that runs beside it and writes its file, as in the daemon.
const recording side = "recording"

// recorder is statusd's manager with a history.
type recorder struct {
	*ours
	end func()
}

func newRecorder(client status.Client) *recorder {
	dir, err := os.MkdirTemp("", "bench-history-")
	if err != nil {
		panic(fmt.Sprintf("directory for the history: %v", err))
	}
	store := history.New(history.Options{File: filepath.Join(dir, "history")})
	r := &recorder{ours: newOursObserved(client, limit{}, store)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		store.Run(ctx)
	}()
	r.end = func() {
		cancel()
		<-done
		os.RemoveAll(dir)
	}
	return r
}

func (r *recorder) stop() {
	r.ours.stop()
	r.end()
}

// recordedName is the name of a result with a history.
func recordedName(name string) string {
	call, allocs := strings.CutSuffix(name, "_allocs")
	if allocs {
		return call + "_history_allocs"
	}
	return name + "_history"
}

// withHistory measures scenarios once more, with a history on our side. Upstream has none; it is
// measured beside it as it is.
func withHistory(all []scenario, names ...string) []scenario {
	var chosen []scenario
	for _, s := range all {
		if !slices.Contains(names, s.yields[0].name) {
			continue
		}
		measure := s.measure
		yields := slices.Clone(s.yields)
		for i := range yields {
			yields[i].name = recordedName(yields[i].name)
		}
		s.yields = yields
		s.measure = func(ctx context.Context, lab *lab, of side) ([]float64, error) {
			if of == statusd {
				of = recording
			}
			return measure(ctx, lab, of)
		}
		chosen = append(chosen, s)
	}
	return chosen
}
