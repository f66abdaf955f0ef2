package history

import (
	"fmt"
	"strconv"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/linelog"
)

// The file is text: a first line with the version of the format, then one line per step, each a
// checksum and a JSON object. So a damaged line costs itself, and a person can read the file.
const (
	heading     = "statusd history "
	fileVersion = 1
)

// line is one step in the file.
type line struct {
	Op  op        `json:"op"`
	UID types.UID `json:"uid,omitempty"` // empty: the node
	At  int64     `json:"at,omitempty"`
	// Of a pod.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Dropped   int    `json:"dropped,omitempty"`
	// Of a record.
	Record *record `json:"record,omitempty"`
	// Of an acceptance: it holds for the records through this one. Seq is the last number given.
	Through uint64 `json:"through,omitempty"`
	Seq     uint64 `json:"seq,omitempty"`
}

type op string

const (
	opPod      op = "pod"
	opRecord   op = "record"
	opAccepted op = "accepted"
	opGone     op = "gone"
	opSeq      op = "seq" // the numbers that were given
	opEnd      op = "end" // the store was stopped and nothing is missing
)

// record is a record in the file.
type record struct {
	Seq      uint64 `json:"seq"`
	Changed  uint64 `json:"changed,omitempty"`
	Accepted int64  `json:"accepted,omitempty"`
	Waits    bool   `json:"waits,omitempty"` // for the API server
	Dropped  uint32 `json:"dropped,omitempty"`
	subject
	what
}

func podLine(l *log) line {
	return line{Op: opPod, UID: l.ref.UID, At: l.created, Namespace: l.ref.Namespace, Name: l.ref.Name, Dropped: l.dropped}
}

func recordLine(l *log, e *entry) line {
	r := &record{Seq: e.seq, Accepted: e.accepted, Waits: e.version != 0, Dropped: e.dropped, subject: e.about.Value(), what: e.what.Value()}
	if e.changed != e.seq {
		r.Changed = e.changed
	}
	return line{Op: opRecord, UID: l.ref.UID, At: e.observed, Record: r}
}

// entry returns a record of the file as it is in memory. Which version of the status it belongs to is
// not known after a restart: the first that the API server accepts has all that was before.
func (l *line) entry() entry {
	r := l.Record
	e := entry{seq: r.Seq, changed: max(r.Changed, r.Seq), observed: l.At, accepted: r.Accepted, dropped: r.Dropped, about: unique.Make(r.subject), what: unique.Make(r.what)}
	if r.Waits {
		e.version = 1
	}
	return e
}

func appendLine(to []byte, l *line) []byte {
	to, err := linelog.Append(to, l)
	if err != nil {
		panic(fmt.Sprintf("history: %v", err)) // only numbers and strings
	}
	return to
}

func parseLine(text []byte) (l line, err error) {
	if err := linelog.Parse(text, &l); err != nil {
		return l, err
	}
	if l.Op == opRecord && (l.Record == nil || l.Record.Seq == 0 || l.Record.Seq > maxSeq || l.Record.Changed > maxSeq) {
		return l, linelog.ErrDamaged
	}
	return l, nil
}

// maxSeq is the largest number that a program in JavaScript can read.
const maxSeq = 1<<53 - 1

func parseHeading(text []byte) (version int, ok bool) {
	rest, ok := strings.CutPrefix(string(text), heading)
	if !ok {
		return 0, false
	}
	version, err := strconv.Atoi(rest)
	return version, err == nil && version > 0
}
