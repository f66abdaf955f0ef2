package journal_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/journal/journaltest"
)

// stored opens a journal that holds n pods.
func stored(b *testing.B, n int) *journal.Durable {
	b.Helper()
	j, err := journal.Open(filepath.Join(b.TempDir(), "journal.db"), journal.Options{NodeName: "node-1"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := j.Close(); err != nil {
			b.Error(err)
		}
	})
	var group sync.WaitGroup // writes at the same time are one commit
	for i := range n {
		group.Go(func() {
			if err := j.SetPodAllocation(journaltest.UID(i), journaltest.Allocation(i)); err != nil {
				b.Error(err)
			}
		})
	}
	group.Wait()
	return j
}

// BenchmarkSetAllocation stores one allocation in journals of different sizes. They take
// turns, so that whatever else the machine does at a moment hits all of them. The ratios
// are of the medians: 1 is the journal of 10 pods.
func BenchmarkSetAllocation(b *testing.B) {
	sizes := []int{10, 100, 1000, 10000}
	journals := make([]*journal.Durable, len(sizes))
	for i, n := range sizes {
		journals[i] = stored(b, n)
	}
	took := make([][]time.Duration, len(sizes))
	round := 0
	for b.Loop() {
		round++
		for i, n := range sizes {
			uid, allocation := journaltest.UID(round*7919%n), journaltest.Allocation(round)
			start := time.Now()
			if err := journals[i].SetPodAllocation(uid, allocation); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(start))
		}
	}
	b.ReportMetric(0, "ns/op") // of all sizes together: it says nothing
	for i, n := range sizes {
		b.ReportMetric(float64(median(took[i]).Microseconds()), fmt.Sprintf("µs/write-at-%d", n))
		b.ReportMetric(float64(median(took[i]))/float64(median(took[0])), fmt.Sprintf("x-at-%d", n))
	}
}

func median(times []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(times))[len(times)/2]
}

// BenchmarkConcurrentWriters compares the rate of 16 writers with that of one, in turns.
func BenchmarkConcurrentWriters(b *testing.B) {
	const writers, each = 16, 8
	j := stored(b, 1000)
	value := 0
	var alone, together time.Duration
	for b.Loop() {
		value++
		start := time.Now()
		write(b, j, 0, each, value)
		alone += time.Since(start)

		value++
		start = time.Now()
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() { write(b, j, w, each, value) })
		}
		group.Wait()
		together += time.Since(start)
	}
	rateAlone := float64(b.N*each) / alone.Seconds()
	rateTogether := float64(b.N*each*writers) / together.Seconds()
	b.ReportMetric(0, "ns/op") // of both together: it says nothing
	b.ReportMetric(rateAlone, "writes/s-by-1")
	b.ReportMetric(rateTogether, "writes/s-by-16")
	b.ReportMetric(rateTogether/rateAlone, "x-rate")
}

func write(b *testing.B, j *journal.Durable, writer, each, value int) {
	for i := range each {
		if err := j.SetPodAllocation(journaltest.UID(writer*each+i), journaltest.Allocation(value)); err != nil {
			b.Error(err)
		}
	}
}
