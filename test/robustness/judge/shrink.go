package judge

import "github.com/statusd/statusd/test/robustness/record"

// Shrink returns a part of a history that still shows the same violation, and none of whose records can be left out.
func Shrink(history []record.Record, v Violation) []record.Record {
	var judge func([]record.Record) []Violation
	for _, validator := range Validators {
		if validator.Invariant == v.Invariant {
			judge = validator.pod
			if validator.all != nil {
				judge = validator.all
			}
		}
	}
	shows := func(records []record.Record) bool {
		for _, other := range judge(records) {
			if other.UID == v.UID && other.Text == v.Text {
				return true
			}
		}
		return false
	}
	records := until(Of(history, v), v.At)
	if !shows(records) { // what comes later is part of it, as with what is late
		records = Of(history, v)
	}
	for size := max(1, len(records)/2); ; {
		shorter := false
		for from := 0; from+size <= len(records); {
			if rest := without(records, from, size); shows(rest) {
				records, shorter = rest, true
			} else {
				from += size
			}
		}
		switch {
		case size > 1:
			size /= 2
		case !shorter:
			return records
		}
	}
}

func until(records []record.Record, at int64) []record.Record {
	for i := range records {
		if records[i].At > at {
			return records[:i]
		}
	}
	return records
}

func without(records []record.Record, from, size int) []record.Record {
	rest := make([]record.Record, 0, len(records)-size)
	return append(append(rest, records[:from]...), records[from+size:]...)
}
