package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"syscall"

	"github.com/statusd/statusd/test/controlplane/server/datadir"
)

// address is how clients reach the server at a port.
func address(port int) string { return "https://" + loopback(port) }

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

// listen binds the wanted port, or the port that the directory was served at before, or a free
// port, and records the port.
func listen(dir *datadir.Dir, wanted int) (net.Listener, error) {
	hint := "choose another --port, or 0 for a free one"
	if wanted == 0 {
		remembered, err := dir.Port()
		if err != nil {
			return nil, err
		}
		// Moving silently would strand the clients that wait for a restart.
		wanted, hint = remembered, "this data directory was served there before; free it, or move with --port"
	}
	if wanted == 0 {
		return listenAnywhere(dir)
	}
	l, err := net.Listen("tcp", loopback(wanted))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d on 127.0.0.1 is in use by another process: %s", wanted, hint)
	}
	if err != nil {
		return nil, fmt.Errorf("port %d on 127.0.0.1: %w", wanted, err)
	}
	return l, remember(dir, l)
}

// listenAnywhere finds a free port below the range from which the kernel takes ports for outgoing
// connections. In that range the port could be lost between kill and restart: to any connection, or
// to a client of ours that dials the dead server until it is connected to itself.
func listenAnywhere(dir *datadir.Dir) (net.Listener, error) {
	const lowest, tries = 20000, 100
	if first := firstEphemeralPort(); first > lowest {
		for range tries {
			if l, err := net.Listen("tcp", loopback(lowest+rand.IntN(first-lowest))); err == nil {
				return l, remember(dir, l)
			}
		}
	}
	l, err := net.Listen("tcp", loopback(0))
	if err != nil {
		return nil, fmt.Errorf("no free port on 127.0.0.1: %w", err)
	}
	return l, remember(dir, l)
}

// firstEphemeralPort is 0 if the kernel does not say.
func firstEphemeralPort() int {
	content, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0
	}
	var first int
	if _, err := fmt.Sscan(string(content), &first); err != nil {
		return 0
	}
	return first
}

func remember(dir *datadir.Dir, l net.Listener) error {
	if err := dir.SetPort(port(l)); err != nil {
		l.Close()
		return err
	}
	return nil
}
