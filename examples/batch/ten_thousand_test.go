//go:build !race

package main

import "testing"

func TestTenThousandPodsLeaveNothing(t *testing.T) { leavesNothing(t, 10) }
