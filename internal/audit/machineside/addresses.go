package machineside

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxRoutes is how much of a table of routes is read. The addresses of a machine with more routes are not known.
const maxRoutes = 1 << 20

// addresses are the IP addresses of the network that a process is in, without those of the loopback and of single links; empty if they are not known.
// The process is the kubelet, because an observer in a container is in a network of its own.
func addresses(h *host, proc string, pid int) []string {
	if pid == 0 {
		return nil
	}
	net := filepath.Join(proc, strconv.Itoa(pid), "net")
	routes, err := h.read(filepath.Join(net, "fib_trie"), maxRoutes)
	if err != nil {
		return nil
	}
	found := localRoutes(routes)
	if six, err := h.read(filepath.Join(net, "if_inet6"), maxRoutes); err == nil {
		found = append(found, inet6(six)...)
	}
	var list []string
	for _, a := range found {
		if !a.IsLoopback() && !a.IsLinkLocalUnicast() {
			list = append(list, a.String())
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// localRoutes are the addresses of the table of routes that belong to the machine: an address on a line of its own, then its kind.
func localRoutes(table []byte) (list []netip.Addr) {
	var last netip.Addr
	lines := bufio.NewScanner(bytes.NewReader(table))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if leaf, ok := strings.CutPrefix(line, "|-- "); ok {
			last, _ = netip.ParseAddr(leaf)
		} else if line == "/32 host LOCAL" && last.IsValid() {
			list = append(list, last)
		}
	}
	return list
}

// inet6 are the addresses of the kernel's table of IPv6 addresses, which has one in hexadecimal digits at the start of each line.
func inet6(table []byte) (list []netip.Addr) {
	for line := range strings.Lines(string(table)) {
		digits, _, _ := strings.Cut(line, " ")
		raw, err := hex.DecodeString(digits)
		if err != nil {
			continue
		}
		if a, ok := netip.AddrFromSlice(raw); ok {
			list = append(list, a)
		}
	}
	return list
}
