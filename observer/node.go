package observer

import (
	"context"
	"strings"
	"time"

	"github.com/statusd/statusd/history"
	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/observe"
)

// nodeInterval is how often the sides are compared with what the history of the node says.
const nodeInterval = 2 * time.Second

// followNode keeps the history of the node itself: when the observer ran, and which sides answered.
func (o *Observer) followNode(ctx context.Context) error {
	add := func(r history.Record) {
		r.Kind = history.KindNode
		o.history.Add(history.Ref{}, r)
		o.listeners.Announce("")
	}
	add(history.Record{Subject: "observer", To: "started", Message: strings.TrimSpace("version " + o.options.Version)})
	before := map[observe.Side]bool{}
	for backoff.Sleep(ctx, nodeInterval) {
		for _, r := range sideRecords(before, o.view.Load().report.Sides) {
			add(r)
		}
	}
	add(history.Record{Subject: "observer", From: "started", To: "stopped"})
	return nil
}

// sideRecords are what differs between two looks at the sides; before is brought up to date.
func sideRecords(before map[observe.Side]bool, now map[observe.Side]observe.Answer) (records []history.Record) {
	for _, side := range sideOrder {
		answer := now[side]
		answers, known := before[side]
		if !known && !answer.Known() && answer.Err == "" || known && answers == answer.Known() {
			continue // not asked yet, or nothing new
		}
		before[side] = answer.Known()
		r := history.Record{Subject: string(side), To: "answers"}
		if !answer.Known() {
			r.To, r.Message = "silent", answer.Err
		}
		records = append(records, r)
	}
	return records
}
