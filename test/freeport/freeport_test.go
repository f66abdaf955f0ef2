package freeport

import (
	"net"
	"testing"
)

func TestAPortIsTakenOnce(t *testing.T) {
	taken := map[int]bool{}
	for range 500 {
		port, held, err := Take()
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		if taken[port] {
			t.Fatalf("port %d is taken twice", port)
		}
		taken[port] = true
	}
}

func TestAPortInUseIsNotTaken(t *testing.T) {
	port, held, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address(port))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if _, err := hold(port); err == nil {
		t.Errorf("port %d is taken twice", port)
	}
	held.Close()
	if _, err := hold(port); err == nil {
		t.Errorf("port %d is taken, though something listens there", port)
	}
}
