//go:build !race

package journal

import (
	"fmt"
	"testing"
)

// These tests simulate hours or draw many cases, which takes minutes under the race detector; the other tests of the
// package show it the same goroutines.

func TestEachByteFlippedAndEachCut_NeverASilentlyWrongState(t *testing.T) {
	for _, closed := range []bool{false, true} {
		s := makeSpecimen(t, closed)
		t.Logf("closed %t: log %d bytes, copy %d bytes, %d commits", closed, len(s.log), len(s.backup), len(s.states))
		log, backup := readLog(s.log), readLog(s.backup)
		if log.damage != nil || backup.damage != nil {
			t.Fatalf("the whole files are damaged: %v, %v", log.damage, backup.damage)
		}
		damageEach(t, fmt.Sprintf("log, closed %t", closed), s.log, func(damaged []byte) string {
			return s.judgeLog(damaged, backup, closed)
		})
		damageEach(t, fmt.Sprintf("copy, closed %t", closed), s.backup, func(damaged []byte) string {
			return s.judgeBackup(log, damaged)
		})
	}
}
