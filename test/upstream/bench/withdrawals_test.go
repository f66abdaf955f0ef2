package main

import "testing"

func TestWithdrawalsAreSpreadEvenlyOverTheBurst(t *testing.T) {
	for _, c := range []struct{ starts, withdrawals int }{{2000, 100}, {300, 50}, {100, 10}, {60, 60}, {7, 3}} {
		last := 0
		for n := range c.starts {
			if dueAt(n+1, c.starts, c.withdrawals) > dueAt(n, c.starts, c.withdrawals)+1 {
				t.Errorf("%v: two withdrawals at once after %d starts", c, n+1)
			}
			last = dueAt(n+1, c.starts, c.withdrawals)
		}
		if first := dueAt(0, c.starts, c.withdrawals); first != 0 || last != c.withdrawals {
			t.Errorf("%v: %d withdrawals before the first start and %d in the end, want none and all", c, first, last)
		}
	}
}
