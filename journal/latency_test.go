package journal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/journal/journaltest"
)

// BenchmarkCommit is the latency of one write, by one writer and by eight at once.
func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 8} {
		b.Run(fmt.Sprint("writers-", writers), func(b *testing.B) {
			j := stored(b, 100)
			took := make([][]time.Duration, writers)
			b.ResetTimer()
			start := time.Now()
			var group sync.WaitGroup
			for w := range writers {
				group.Go(func() {
					for i := range b.N {
						begin := time.Now()
						if err := j.SetPodAllocation(journaltest.UID(w), journaltest.Allocation(i)); err != nil {
							b.Error(err)
						}
						took[w] = append(took[w], time.Since(begin))
					}
				})
			}
			group.Wait()
			elapsed := time.Since(start)
			all := slices.Sorted(slices.Values(slices.Concat(took...)))
			b.ReportMetric(float64(all[len(all)/2].Microseconds()), "µs-p50")
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "µs-p99")
			b.ReportMetric(float64(len(all))/elapsed.Seconds(), "writes/s")
		})
	}
}

// BenchmarkPodLives lets 10,000 pods be allocated, end, be delivered and go, 104 at a time,
// and reports the size of the files and how long it takes to open them.
func BenchmarkPodLives(b *testing.B) {
	for b.Loop() {
		path := filepath.Join(b.TempDir(), "journal.db")
		j := at(b, path)
		begin := time.Now()
		var group sync.WaitGroup
		for w := range 8 {
			group.Go(func() {
				for n := w; n < 10000; n += 8 {
					uid := journaltest.UID(n)
					must(b, j.SetPodAllocation(uid, journaltest.Allocation(n)))
					must(b, j.RecordTermination(uid, journaltest.ContainerID(n), journaltest.Ended(n)))
					must(b, j.SetFinal(uid, journaltest.Final(n)))
					if n >= 104 { // of the same writer
						must(b, j.RemovePod(journaltest.UID(n-104)))
					}
				}
			})
		}
		group.Wait()
		b.ReportMetric(float64(time.Since(begin).Milliseconds()), "ms-lives")
		size(b, path, "bytes-open", "bytes-copy-open")
		must(b, j.Close())
		size(b, path, "bytes-closed", "bytes-copy-closed")
		begin = time.Now()
		j = at(b, path)
		b.ReportMetric(float64(time.Since(begin).Microseconds()), "µs-open")
		must(b, j.Close())
	}
}

func at(b *testing.B, path string) *journal.Durable {
	j, err := journal.Open(path, journal.Options{NodeName: "node-1"})
	must(b, err)
	return j
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func size(b *testing.B, path, log, spare string) {
	for name, unit := range map[string]string{path: log, path + ".good": spare} {
		info, err := os.Stat(name)
		must(b, err)
		b.ReportMetric(float64(info.Size()), unit)
	}
}
