package agent

import (
	"slices"
	"sync"
	"testing"

	"github.com/statusd/statusd/node"
)

// fakeMachine is this one with addresses that a test decides about.
type fakeMachine struct {
	mu        sync.Mutex // guards addresses
	addresses []string
}

func (f *fakeMachine) set(addresses ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addresses = addresses
}

func (f *fakeMachine) read() (node.Reading, error) {
	reading, err := node.ReadMachine("/")
	f.mu.Lock()
	defer f.mu.Unlock()
	reading.Addresses = slices.Clone(f.addresses)
	return reading, err
}

// A machine that has lost its address for a while keeps the one it had.
func TestALostAddressIsKept(t *testing.T) {
	fake := &fakeMachine{}
	m := &addressBook{read: fake.read}
	fake.set("192.0.2.1")
	for range 2 {
		reading, err := m.look()
		if err != nil || !slices.Equal(reading.Addresses, []string{"192.0.2.1"}) {
			t.Errorf("got %v (%v), want the address that the machine had", reading.Addresses, err)
		}
		fake.set()
	}
}
