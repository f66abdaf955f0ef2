package main

import (
	"context"
	"time"
)

// urgentScenarios have a pod lose readiness while many others start.
func urgentScenarios() []scenario {
	return []scenario{
		urgentScenario("urgent_in_burst", circumstances{pods: 500}),
		urgentScenario("urgent_in_burst_qps50", circumstances{pods: 500, limit: kubeletLimit}),
	}
}

func urgentScenario(name string, c circumstances) scenario {
	const into = 100 * time.Millisecond
	return scenario{yields: []yield{{name, "ms"}}, sides: managers, measure: func(ctx context.Context, lab *lab, s side) (_ []float64, err error) {
		st, err := lab.newStage(ctx, s, lab.scaled(c))
		if err != nil {
			return nil, err
		}
		defer func() { err = closing(ctx, st, err) }()
		unready := st.witness.expect(st.first.UID, seenUnready)
		begin, others, err := st.beginBurst(ctx)
		if err != nil {
			return nil, err
		}
		time.Sleep(time.Until(begin.Add(into)))
		lost := time.Now()
		st.manager.setReadiness(st.first.UID, false)
		seen, err := last(ctx, []*sighting{unready})
		if err != nil {
			return nil, err
		}
		// The next run begins on a quiet server.
		if _, err := last(ctx, others); err != nil {
			return nil, err
		}
		return []float64{seen.Sub(lost).Seconds() * 1e3}, nil
	}}
}
