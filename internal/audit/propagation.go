package audit

import (
	"slices"
	"time"
)

// How long news may take. A difference is drift when it has lasted for the bound of its side:
//
//	bound = 2 × P99 + 2 s, at least the floor of the side and at most 2 min;
//	        12 s or more before there are 16 samples
//
// The floor is 3 s. For the API it is 12 s: the kubelet sends a status that the server did not take
// again after up to 10 s, which no sample shows until it happens.
//
// P99 is of the last 256 samples within the last 10 minutes, and never of fewer than the last 16. With
// so few samples it is about the longest, so that it grows with the first news that takes longer:
// under overload later news takes longer, bit by bit, and the bound stays ahead of it. Of a kubelet
// that reports nothing at all there are no samples, and the bound stays as it is.
const (
	boundFactor   = 2
	boundSlack    = 2 * time.Second
	boundFloor    = 3 * time.Second
	boundFloorAPI = 12 * time.Second
	boundCeiling  = 2 * time.Minute
	boundDefault  = 12 * time.Second
	enoughSamples = 16
	sampleWindow  = 10 * time.Minute
	keptSamples   = 256
	longestSample = boundCeiling // longer is a fault that has ended
	trackedAtMost = 4096
	trackedFor    = 15 * time.Minute
)

// sample is one measured time, and when it was measured on the auditor's own count of time.
type sample struct {
	Lag time.Duration `json:"lag"`
	At  time.Duration `json:"at"`
}

// samples are the measured times of one side.
type samples struct {
	Ring []sample `json:"ring,omitempty"`
	// Count is how many there ever were.
	Count int `json:"count"`
}

func (s *samples) add(lag, at time.Duration) {
	s.Count++
	s.Ring = append(s.Ring, sample{Lag: max(lag, 0), At: at})
	drop := max(len(s.Ring)-keptSamples, 0)
	for drop < len(s.Ring)-enoughSamples && at-s.Ring[drop].At > sampleWindow {
		drop++
	}
	s.Ring = slices.Delete(s.Ring, 0, drop)
}

// propagation sums them up.
func (s *samples) propagation(floor time.Duration) Propagation {
	p := Propagation{Samples: s.Count, Bound: boundDefault}
	if len(s.Ring) == 0 {
		return p
	}
	lags := make([]time.Duration, len(s.Ring))
	for i, m := range s.Ring {
		lags[i] = m.Lag
	}
	slices.Sort(lags)
	p.Median = lags[(len(lags)-1)/2]
	p.P99 = lags[(len(lags)*99-1)/100]
	bound := min(max(boundFactor*p.P99+boundSlack, floor), boundCeiling)
	if s.Count < enoughSamples {
		bound = max(bound, boundDefault)
	}
	p.Bound = bound
	return p
}
