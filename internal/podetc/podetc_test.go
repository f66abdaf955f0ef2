package podetc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestResolverOfAPod(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver 192.0.2.53\nsearch example.com\noptions timeout:1 ndots:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	own := &v1.PodDNSConfig{
		Nameservers: []string{"192.0.2.1", "192.0.2.53", "192.0.2.2", "192.0.2.3"}, Searches: []string{"own"},
		Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}, {Name: "rotate"}},
	}
	for _, c := range []struct {
		story  string
		policy v1.DNSPolicy
		want   string
	}{
		{"of the machine, with its own", v1.DNSDefault, "nameserver 192.0.2.53\nnameserver 192.0.2.1\nnameserver 192.0.2.2\nsearch example.com own\noptions timeout:1 ndots:2 rotate\n"},
		{"of a cluster without one, with its own", v1.DNSClusterFirst, "nameserver 192.0.2.53\nnameserver 192.0.2.1\nnameserver 192.0.2.2\nsearch example.com own\noptions timeout:1 ndots:2 rotate\n"},
		{"its own alone", v1.DNSNone, "nameserver 192.0.2.1\nnameserver 192.0.2.53\nnameserver 192.0.2.2\nsearch own\noptions ndots:2 rotate\n"},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{DNSPolicy: c.policy, DNSConfig: own}}
		if got, err := NewResolver(pod, Cluster{}, file); err != nil || got.File() != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.story, got.File(), err, c.want)
		}
	}
}

func TestMachineFile_WithALocalResolver_IsThatOfTheServersItAsks(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	local, upstream := file("local", "nameserver 127.0.0.53\nsearch example.com\n"), file("upstream", "nameserver 192.0.2.53\nsearch example.com\n")
	remote, mixed, missing := file("remote", "nameserver 192.0.2.1\n"), file("mixed", "nameserver ::1\nnameserver 192.0.2.1\n"), filepath.Join(dir, "missing")
	for _, c := range []struct{ story, file, upstream, want string }{
		{"systemd-resolved", local, upstream, upstream},
		{"a server on another machine", remote, upstream, remote},
		{"a local server beside another", mixed, upstream, mixed},
		{"a local server without systemd-resolved", local, missing, local},
		{"two files with local servers", local, local, local},
		{"no file", missing, upstream, missing},
	} {
		if got := MachineFile(c.file, c.upstream); got != c.want {
			t.Errorf("%s: got %s, want %s", c.story, got, c.want)
		}
	}
}

func TestHostsOfTheMachineWithAliases(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{HostAliases: []v1.HostAlias{{IP: "192.0.2.7", Hostnames: []string{"a", "b"}}}}}
	got, err := HostsOfMachine(pod)
	if err != nil || !strings.HasPrefix(got, "# Kubernetes-managed hosts file (host network).\n") || !strings.HasSuffix(got, "\n# Entries added by HostAliases.\n192.0.2.7\ta\tb\n") {
		t.Errorf("got %q, %v", got, err)
	}
}
