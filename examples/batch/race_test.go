//go:build race

package main

import "testing"

func TestPodsLeaveNothing(t *testing.T) { leavesNothing(t, 2) }
