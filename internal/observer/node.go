package observer

import (
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/history"
)

// sideRecords returns what finds the sides that have begun or ceased to answer since its last call.
func (o *Observer) sideRecords() func() []history.Record {
	before := map[audit.Side]bool{}
	return func() []history.Record { return sideRecords(before, o.view.Load().report.Sides) }
}

// sideRecords are what differs between two looks at the sides; before is brought up to date.
func sideRecords(before map[audit.Side]bool, now map[audit.Side]audit.Answer) (records []history.Record) {
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
