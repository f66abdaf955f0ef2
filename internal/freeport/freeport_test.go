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
	listener, err := net.Listen("tcp", Address(t))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for range 2000 {
		port, held, err := Take()
		if err != nil {
			t.Fatal(err)
		}
		held.Close()
		if port == listener.Addr().(*net.TCPAddr).Port {
			t.Fatalf("port %d is taken, though something listens there", port)
		}
	}
}
