package wake

import "testing"

func TestOneSignalIsPending(t *testing.T) {
	c := make(chan struct{}, 1)
	Up(c)
	Up(c) // would block here without the default
	<-c
	select {
	case <-c:
		t.Error("a second signal is pending")
	default:
	}
}
