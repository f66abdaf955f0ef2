package localhost

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"testing"
)

func TestFromOwner_ConnectionOfThisUser(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue // a machine without IPv6
		}
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			uid, known := peerUID(r.Context(), r.RemoteAddr)
			fmt.Fprint(w, uid, known, FromOwner(r))
		})}}
		server.Start()
		response, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		response.Body.Close()
		server.Close()
		if want := fmt.Sprint(os.Geteuid(), true, true); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", address, got, err, want)
		}
	}
}

func TestFromOwner_Strangers(t *testing.T) {
	server := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	for remote, local := range map[string]net.Addr{"127.0.0.1:1": server, "127.0.0.1:2": nil, "": server, "pipe": server} {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		if local != nil {
			request = request.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, local))
		}
		if request.RemoteAddr = remote; FromOwner(request) {
			t.Errorf("a connection from %q to %v, which does not exist, is the owner's", remote, local)
		}
	}
}

func TestKernelAddress(t *testing.T) {
	for address, want := range map[string][2]string{
		"127.0.0.1:8080": {"0100007F:1F90", "0000000000000000FFFF00000100007F:1F90"},
		"[::1]:80":       {"", "00000000000000000000000001000000:0050"},
	} {
		at := netip.MustParseAddrPort(address)
		if got := kernelAddress(at, false); want[0] != "" && got != want[0] {
			t.Errorf("%s: got %s, want %s", address, got, want[0])
		}
		if got := kernelAddress(at, true); got != want[1] {
			t.Errorf("%s as IPv6: got %s, want %s", address, got, want[1])
		}
	}
}
