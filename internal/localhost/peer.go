package localhost

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// FromOwner reports whether a request comes from root or from the user of this process: over a Unix socket, which only
// the owner can use, or by a loopback connection of such a user.
func FromOwner(r *http.Request) bool {
	if OverUnixSocket(r) {
		return true
	}
	uid, ok := peerUID(r.Context(), r.RemoteAddr)
	return ok && (uid == 0 || uid == os.Geteuid())
}

// peerUID finds the user of a request's loopback connection in the kernel's list.
func peerUID(ctx context.Context, remote string) (uid int, ok bool) {
	address, ok := ctx.Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return 0, false
	}
	server, serverErr := netip.ParseAddrPort(address.String())
	client, clientErr := netip.ParseAddrPort(remote)
	if serverErr != nil || clientErr != nil {
		return 0, false
	}
	for _, list := range []string{"/proc/net/tcp", "/proc/net/tcp6"} { // a client may use a socket of IPv6 for IPv4
		if uid, ok := uidIn(list, client, server); ok {
			return uid, true
		}
	}
	return 0, false
}

// uidIn looks for a connection in a list of the kernel, which has the address of its maker first.
func uidIn(list string, from, to netip.AddrPort) (uid int, ok bool) {
	file, err := os.Open(list)
	if err != nil {
		return 0, false
	}
	defer file.Close()
	wide := strings.HasSuffix(list, "6")
	ends := []string{kernelAddress(from, wide), kernelAddress(to, wide)}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 7 && slices.Equal(fields[1:3], ends) {
			uid, err := strconv.Atoi(fields[7])
			return uid, err == nil
		}
	}
	return 0, false
}

// kernelAddress is an address as the kernel lists it: words of four bytes in the order of the machine.
func kernelAddress(address netip.AddrPort, wide bool) string {
	var text strings.Builder
	bytes := address.Addr().Unmap().AsSlice()
	if wide {
		all := address.Addr().As16()
		bytes = all[:]
	}
	for word := range slices.Chunk(bytes, 4) {
		fmt.Fprintf(&text, "%08X", binary.NativeEndian.Uint32(word))
	}
	return fmt.Sprintf("%s:%04X", text.String(), address.Port())
}
