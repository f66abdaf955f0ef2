// Package freeport has ports for programs that must know theirs before they listen, and still after a restart.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"
)

// The ports are below the kernel's range of ephemeral ports.
const first, ports = 20000, 10000

// Take returns a port of the loopback interface that is free, and that nothing else takes by this package, in any process of
// this machine, until held is closed.
func Take() (port int, held net.Listener, err error) {
	for range 100 {
		port = first + rand.IntN(ports)
		if held, err = hold(port); err == nil {
			return port, held, nil
		}
	}
	return 0, nil, errors.Join(errors.New("found no free port"), err)
}

// hold takes a port, unless it is taken or in use.
func hold(port int) (held net.Listener, err error) {
	// A name in the abstract namespace: it exists once on this machine, and goes with its process.
	if held, err = net.Listen("unix", fmt.Sprintf("@statusd-port-%d", port)); err != nil {
		return nil, err
	}
	// A program that is being started would inherit the listener, and have it until it is executed.
	syscall.ForkLock.RLock()
	listener, err := net.Listen("tcp", address(port))
	if err == nil {
		err = listener.Close()
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return held, nil
}

// Address returns an address with a port that is the test's until it ends.
func Address(t *testing.T) string {
	t.Helper()
	port, held, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close() })
	return address(port)
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
