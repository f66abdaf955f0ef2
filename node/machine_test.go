package node

import (
	"net"
	"testing"
)

func TestThisMachineCanBeRead(t *testing.T) {
	r, err := ReadMachine(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if r.CPUs < 1 || r.MemoryTotal < 16<<20 || r.MemoryAvailable > r.MemoryTotal || r.DiskTotal == 0 || r.DiskAvailable > r.DiskTotal ||
		r.PIDs == 0 || r.PIDsUsed == 0 || r.PIDsUsed > r.PIDs || r.KernelVersion == "" || r.BootID == "" {
		t.Errorf("not a plausible machine: %+v", r)
	}
	for _, a := range r.Addresses {
		if ip := net.ParseIP(a); ip == nil || ip.IsLoopback() {
			t.Errorf("address %q is not one that others can reach", a)
		}
	}
}

func TestMissingDiskIsAnErrorWithItsPath(t *testing.T) {
	_, err := ReadMachine("/does/not/exist")
	if err == nil || err.Error() != "node: read the machine: file system of /does/not/exist: no such file or directory" {
		t.Errorf("got %v", err)
	}
}

func TestMeminfo(t *testing.T) {
	total, available, err := parseMeminfo("MemTotal:        8000000 kB\nMemFree:  1 kB\nMemAvailable:    4000000 kB\nHugePages_Total:       7\n")
	if total != 8000000<<10 || available != 4000000<<10 || err != nil {
		t.Errorf("got %d, %d, %v", total, available, err)
	}
	for _, bad := range []string{"", "MemTotal: x kB\n", "MemTotal: 1 kB\nMemAvailable: 2 kB\n"} {
		if _, _, err := parseMeminfo(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestLoadavg(t *testing.T) {
	if got, err := parseLoadavg("0.31 0.32 0.30 2/456 12345"); got != 456 || err != nil {
		t.Errorf("got %d, %v, want 456", got, err)
	}
	for _, bad := range []string{"", "1 2 3", "1 2 3 4 5", "1 2 3 4/x 5"} {
		if _, err := parseLoadavg(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestOSRelease(t *testing.T) {
	for text, want := range map[string]string{
		"NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n": "Debian GNU/Linux 13 (trixie)",
		"NAME=Alpine\n": "Alpine",
		"ID=x\n":        "",
	} {
		if got := parseOSRelease([]byte(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestDefaultRoute(t *testing.T) {
	table := "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n" +
		"docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n" +
		"eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
	if got := defaultRoute(table); got != "eth0" {
		t.Errorf("got %q, want eth0", got)
	}
	if got := defaultRoute(""); got != "" {
		t.Errorf("got %q of no table", got)
	}
}

func TestGlobalAddressesAreOneOfEachFamily(t *testing.T) {
	var all []net.Addr
	for _, cidr := range []string{"fe80::1/64", "2001:db8::1/64", "2001:db8::2/64", "169.254.0.1/16", "192.0.2.1/24", "192.0.2.2/24"} {
		ip, n, err := net.ParseCIDR(cidr)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &net.IPNet{IP: ip, Mask: n.Mask})
	}
	got := globalAddresses(all)
	if len(got) != 2 || got[0] != "192.0.2.1" || got[1] != "2001:db8::1" {
		t.Errorf("got %v, want the first of each family, IPv4 first", got)
	}
}
