package localhost

import "testing"

func TestOnlyNamesOfThisMachineAreServed(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST:80": true, "127.0.0.1:10265": true, "127.1.2.3": true, "[::1]:10265": true, "[::1]": true,
		"": false, "evil.example": false, "localhost.evil.example": false, "127.0.0.1.evil.example:80": false, "192.0.2.1": false, "0.0.0.0": false, "2130706433": false,
	} {
		if got := IsLoopback(host); got != want {
			t.Errorf("host %q: got %v, want %v", host, got, want)
		}
	}
}
