//go:build real

package controlplane_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestServerListensAtOnePortOfLoopbackOnly(t *testing.T) {
	process := shared.Server(t).Process
	pid, err := os.ReadFile(filepath.Join(process.DataDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimPrefix(process.Address(), "https://")
	if got := listening(t, strings.TrimSpace(string(pid))); len(got) != 1 || got[0] != want {
		t.Errorf("the server listens at %v, want [%s] only", got, want)
	}
}

// listening is every TCP address that the process listens at, as the kernel tells it.
func listening(t *testing.T, pid string) []string {
	t.Helper()
	sockets := socketsOf(t, pid)
	var addresses []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, err := os.ReadFile(table)
		if err != nil {
			continue // a kernel without that protocol
		}
		for line := range strings.Lines(string(content)) {
			const local, state, inode, listen = 1, 3, 9, "0A"
			fields := strings.Fields(line)
			if len(fields) > inode && fields[state] == listen && sockets[fields[inode]] {
				addresses = append(addresses, readable(fields[local]))
			}
		}
	}
	return addresses
}

// socketsOf is the inodes of the sockets that the process has open.
func socketsOf(t *testing.T, pid string) map[string]bool {
	t.Helper()
	descriptors, err := filepath.Glob("/proc/" + pid + "/fd/*")
	if err != nil || len(descriptors) == 0 {
		t.Fatalf("open files of process %s: got %v, %v, want some", pid, descriptors, err)
	}
	sockets := map[string]bool{}
	for _, descriptor := range descriptors {
		target, _ := os.Readlink(descriptor) // it may be closed by now
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return sockets
}

// readable turns the kernel's 0100007F:1F90 into 127.0.0.1:8080 and leaves what is not IPv4 alone.
func readable(hex string) string {
	address, port, _ := strings.Cut(hex, ":")
	number, err := strconv.ParseUint(port, 16, 16)
	var a, b, c, d byte
	if n, _ := fmt.Sscanf(address, "%02x%02x%02x%02x", &d, &c, &b, &a); err != nil || n != 4 || len(address) != 8 {
		return hex
	}
	return net.JoinHostPort(net.IPv4(a, b, c, d).String(), strconv.FormatUint(number, 10))
}
