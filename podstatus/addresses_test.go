package podstatus_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/podrules"
)

func TestN6_AddressesAgree(t *testing.T) {
	for _, row := range []struct {
		story    string
		main     string
		all      []string
		wantMain string
		wantAll  string
	}{
		{"none", "", nil, "", "[]"},
		{"an empty list", "", []string{}, "", "[]"},
		{"both", "10.0.0.1", []string{"10.0.0.1", "fd00::1"}, "10.0.0.1", "[10.0.0.1 fd00::1]"},
		{"the main one only, as virtual kubelets report", "10.0.0.1", nil, "10.0.0.1", "[10.0.0.1]"},
		{"the list only", "", []string{"fd00::1", "10.0.0.1"}, "fd00::1", "[fd00::1 10.0.0.1]"},
		{"another one leads the list", "10.0.0.1", []string{"10.0.0.2", "10.0.0.1"}, "10.0.0.1", "[10.0.0.1]"},
		{"the list begins with nothing", "", []string{""}, "", "[]"},
	} {
		reported := &v1.PodStatus{
			PodIP: row.main, PodIPs: convertIPs[v1.PodIP](row.all),
			HostIP: row.main, HostIPs: convertIPs[v1.HostIP](row.all),
		}
		got := podrules.Normalize(&v1.Pod{}, reported)
		for what, is := range map[string]string{
			"pod":  fmt.Sprint(got.PodIP, " ", convertBack(got.PodIPs)),
			"host": fmt.Sprint(got.HostIP, " ", convertBack(got.HostIPs)),
		} {
			check(t, row.story+", "+what, is, row.wantMain+" "+row.wantAll)
		}
		if row.main == "" && len(row.all) == 0 {
			continue
		}
		stored := podrules.Next(&v1.Pod{}, &v1.PodStatus{}, reported, noon)
		if !podrules.Unchanged(&v1.Pod{}, &stored, reported) {
			t.Errorf("%s: the same report again is a change", row.story)
		}
	}
}

func convertBack[T v1.PodIP | v1.HostIP](list []T) []string {
	var ips []string
	for _, address := range list {
		if ip := v1.PodIP(address).IP; ip != "" {
			ips = append(ips, ip)
		}
	}
	return ips
}

// checkAddresses stores one report over another: whether that is a change is the same
// whether the second is compared as it is or after it was normalized.
func checkAddresses(t *rapid.T) {
	draw := func(label string) *v1.PodStatus {
		return &v1.PodStatus{
			PodIP:  anyOf(t, label+" pod IP", "", "10.0.0.1", "10.0.0.2"),
			PodIPs: convertIPs[v1.PodIP](drawIPs(t, label+" pod IPs")),
			HostIP: anyOf(t, label+" host IP", "", "10.0.0.1"), HostIPs: convertIPs[v1.HostIP](drawIPs(t, label+" host IPs")),
		}
	}
	pod := &v1.Pod{}
	cached := podrules.Next(pod, &v1.PodStatus{}, draw("first"), epoch)
	incoming := draw("second")
	next := podrules.Next(pod, &cached, incoming, epoch)
	if got, want := podrules.Unchanged(pod, &cached, incoming), podrules.Equal(&cached, &next); got != want {
		t.Fatalf("Unchanged is %t, Equal of what would be stored is %t\ncached: %+v\nincoming: %+v", got, want, cached, incoming)
	}
	if len(next.PodIPs) > 0 && next.PodIPs[0].IP != next.PodIP || len(next.HostIPs) > 0 && next.HostIPs[0].IP != next.HostIP {
		t.Fatalf("the addresses do not agree: %+v", next)
	}
}

func TestAddressesCompareAsTheyAreStored(t *testing.T) { rapid.Check(t, checkAddresses) }

func FuzzAddresses(f *testing.F) { fuzz(f, checkAddresses) }
