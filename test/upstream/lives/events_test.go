package main

import "testing"

func TestEventsAreToldApart(t *testing.T) {
	got := eventCells([]string{"Normal Created", "Normal Started", "Warning Failed"}, []string{"Normal Started", "Warning Unhealthy"})
	if want := " Started | Created, Failed | Unhealthy |\n"; got != want {
		t.Errorf("row is %q, want %q", got, want)
	}
}
