package logs

import (
	"bytes"
	"runtime"
	"testing"
)

func BenchmarkSearch(b *testing.B) {
	filler := bytes.Repeat([]byte(`I1115 10:00:00.000001 1 kubelet.go:2500] "SyncLoop (probe)" probe="readiness" status="ready" pod="default/web-7d4b9c5d8-abcde"`+"\n"), 2048)
	rules, err := compile(DefaultRules())
	if err != nil {
		b.Fatal(err)
	}
	for _, o := range origins {
		b.Run(string(o), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			f := newPrefilter(rules, []Origin{o})
			before := threadTime()
			for b.Loop() {
				f.lines(filler, func([]byte) { b.Error("found") })
			}
			b.ReportMetric(float64(len(filler)*b.N)/1e6/(threadTime()-before).Seconds(), "MB/CPU-s")
		})
	}
}
