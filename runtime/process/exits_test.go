package process

import "testing"

// The runtime after a reload waits on the descriptors of the one before it, whose wait ended with a wake-up.
func TestWakeUp_EndsOneWait(t *testing.T) {
	e, err := newExits()
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	e.wakeUp()
	e.wakeUp() // it counts once
	if ended, spoke, err := e.wait(); len(ended)+len(spoke) != 0 || err != nil {
		t.Fatalf("wait returned %v, %v, %v", ended, spoke, err)
	}
	if hasEnded(e.wake) { // it can be read
		t.Error("each further wait would return at once")
	}
}
