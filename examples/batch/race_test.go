//go:build race

package main

import "testing"

// perWave is how many pods come and go at a time. The race detector needs the goroutines, not the crowd.
const perWave = 200

func TestPodsLeaveNothing(t *testing.T) { leavesNothing(t, 2) }
