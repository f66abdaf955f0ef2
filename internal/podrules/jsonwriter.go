package podrules

import (
	"encoding/json"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// jsonWriter appends JSON to a buffer and puts the commas where they belong. The first
// error sticks, so that the code which writes need not look at each step.
type jsonWriter struct {
	buf []byte
	err error
}

// open starts an object or list; close ends it. The argument is the bracket.
func (w *jsonWriter) open(bracket byte) {
	w.comma()
	w.buf = append(w.buf, bracket)
}

func (w *jsonWriter) close(bracket byte) {
	w.buf = append(w.buf, bracket)
}

// key starts a member of an object. The name must need no escaping.
func (w *jsonWriter) key(name string) {
	w.comma()
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '"', ':')
}

// quotedKey is key for a name that may need escaping.
func (w *jsonWriter) quotedKey(name string) {
	w.string(name)
	w.buf = append(w.buf, ':')
}

// comma separates what comes next from what is there, if that is a complete value.
func (w *jsonWriter) comma() {
	if len(w.buf) == 0 {
		return
	}
	switch w.buf[len(w.buf)-1] {
	case '{', '[', ':', ',':
	default:
		w.buf = append(w.buf, ',')
	}
}

func (w *jsonWriter) null() {
	w.comma()
	w.buf = append(w.buf, "null"...)
}

func (w *jsonWriter) int(n int64) {
	w.comma()
	w.buf = strconv.AppendInt(w.buf, n, 10)
}

// string writes plain text as it is and leaves all escaping to encoding/json.
func (w *jsonWriter) string(s string) {
	if !isPlain(s) {
		w.value(s)
		return
	}
	w.comma()
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, s...)
	w.buf = append(w.buf, '"')
}

// time writes a time as metav1.Time does: in UTC, in whole seconds, null if unset.
func (w *jsonWriter) time(t metav1.Time) {
	if t.IsZero() {
		w.null()
		return
	}
	w.comma()
	w.buf = append(w.buf, '"')
	w.buf = t.UTC().AppendFormat(w.buf, time.RFC3339)
	w.buf = append(w.buf, '"')
}

// value writes anything else by its own JSON encoding.
func (w *jsonWriter) value(v any) {
	encoded, err := json.Marshal(v)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.comma()
	w.buf = append(w.buf, encoded...)
}

// isPlain reports whether the text means the same between quotes in JSON.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
