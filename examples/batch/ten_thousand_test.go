//go:build !race

package main

import "testing"

// perWave is how many pods come and go at a time.
const perWave = 1000

func TestTenThousandPodsLeaveNothing(t *testing.T) { leavesNothing(t, 10) }
