package cri

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clients "k8s.io/client-go/kubernetes/fake"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestDNS(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver 192.0.2.53\nsearch example.com\noptions timeout:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &Runtime{options: Options{ResolvConf: file, ClusterDNS: []string{"10.0.0.10"}, ClusterDomain: "cluster.local"}}
	own := &v1.PodDNSConfig{Nameservers: []string{"1.1.1.1"}, Searches: []string{"own"}, Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}}}
	for _, c := range []struct {
		story                      string
		policy                     v1.DNSPolicy
		host                       bool
		config                     *v1.PodDNSConfig
		servers, searches, options string
	}{
		{"cluster", v1.DNSClusterFirst, false, nil, "10.0.0.10", "ns.svc.cluster.local svc.cluster.local cluster.local example.com", "ndots:5"},
		{"cluster, and of its own", v1.DNSClusterFirst, false, own, "10.0.0.10 1.1.1.1", "ns.svc.cluster.local svc.cluster.local cluster.local example.com own", "ndots:2"},
		{"cluster with the node's network", v1.DNSClusterFirst, true, nil, "192.0.2.53", "example.com", "timeout:1"},
		{"cluster with the node's network on purpose", v1.DNSClusterFirstWithHostNet, true, nil, "10.0.0.10", "ns.svc.cluster.local svc.cluster.local cluster.local example.com", "ndots:5"},
		{"the node's", v1.DNSDefault, false, nil, "192.0.2.53", "example.com", "timeout:1"},
		{"none", v1.DNSNone, false, own, "1.1.1.1", "own", "ndots:2"},
	} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: v1.PodSpec{DNSPolicy: c.policy, HostNetwork: c.host, DNSConfig: c.config}}
		got, err := r.dns(pod)
		if err != nil || strings.Join(got.Servers, " ") != c.servers || strings.Join(got.Searches, " ") != c.searches || strings.Join(got.Options, " ") != c.options {
			t.Errorf("%s: got %v, %v", c.story, got, err)
		}
	}
}

func TestHostsFile(t *testing.T) {
	r := &Runtime{options: Options{ClusterDomain: "cluster.local"}}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: v1.PodSpec{
		Subdomain: "sub", HostAliases: []v1.HostAlias{{IP: "192.0.2.7", Hostnames: []string{"a", "b"}}},
	}}
	got, err := r.hostsFile(pod, []string{"10.0.0.1"})
	if err != nil || !strings.HasPrefix(got, "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n") ||
		!strings.HasSuffix(got, "10.0.0.1\tweb.sub.ns.svc.cluster.local\tweb\n\n# Entries added by HostAliases.\n192.0.2.7\ta\tb\n") {
		t.Errorf("got %q, %v", got, err)
	}
	pod.Spec = v1.PodSpec{HostNetwork: true}
	if got, err = r.hostsFile(pod, nil); err != nil || !strings.HasPrefix(got, "# Kubernetes-managed hosts file (host network).\n") {
		t.Errorf("with the node's network: got %q, %v", got, err)
	}
}

func TestUsers(t *testing.T) {
	root, other := int64(0), int64(1000)
	for _, c := range []struct {
		story   string
		user    *int64
		nonRoot bool
		image   *runtimeapi.Image
		want    string // of the user, or of the error
	}{
		{"the image's root", nil, false, &runtimeapi.Image{}, "0"},
		{"the image's number", nil, true, &runtimeapi.Image{Uid: &runtimeapi.Int64Value{Value: 7}}, "7"},
		{"the image's name", nil, false, &runtimeapi.Image{Username: "web"}, "web"},
		{"its own", &other, true, &runtimeapi.Image{}, "1000"},
		{"root where none may be", nil, true, &runtimeapi.Image{}, "image will run as root"},
		{"a name where none may be root", nil, true, &runtimeapi.Image{Username: "web"}, "non-numeric user (web)"},
		{"asks for root and for none", &root, true, &runtimeapi.Image{}, "breaks non-root policy"},
	} {
		pod := testPod("uid-1")
		pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: c.user, RunAsNonRoot: &c.nonRoot}
		got, err := containerSecurity(pod, &pod.Spec.Containers[0], c.image)
		text := got.GetRunAsUsername()
		if got.GetRunAsUser() != nil {
			text = strconv.FormatInt(got.RunAsUser.Value, 10)
		}
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%s: got %q, want %q", c.story, text, c.want)
		}
	}
}

func TestSecurity(t *testing.T) {
	no := false
	pod := testPod("uid-1")
	pod.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(5)), SupplementalGroups: []int64{6}, SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault}}
	pod.Spec.Containers[0].SecurityContext = &v1.SecurityContext{
		AllowPrivilegeEscalation: &no, Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}, Add: []v1.Capability{"CAP_NET_BIND_SERVICE"}},
	}
	got, err := containerSecurity(pod, &pod.Spec.Containers[0], &runtimeapi.Image{})
	if err != nil || !got.NoNewPrivs || !slices.Equal(got.SupplementalGroups, []int64{6, 5}) || got.Seccomp.ProfileType != runtimeapi.SecurityProfile_RuntimeDefault ||
		!slices.Equal(got.Capabilities.AddCapabilities, []string{"NET_BIND_SERVICE"}) || !slices.Equal(got.Capabilities.DropCapabilities, []string{"ALL"}) || len(got.MaskedPaths) == 0 {
		t.Errorf("got %v, %v", got, err)
	}
	if plain, _ := containerSecurity(testPod("uid-1"), &v1.Container{}, &runtimeapi.Image{}); plain.Seccomp.ProfileType != runtimeapi.SecurityProfile_Unconfined {
		t.Errorf("without a profile: got %v, want none", plain.Seccomp)
	}
}

func TestServiceVariables(t *testing.T) {
	service := func(namespace, name, ip string) *v1.Service {
		return &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1.ServiceSpec{ClusterIP: ip, Ports: []v1.ServicePort{{Name: "http", Port: 80, Protocol: v1.ProtocolTCP}}}}
	}
	r := &Runtime{options: Options{Client: clients.NewClientset(service("default", "kubernetes", "10.0.0.1"), service("ns", "my-web", "10.0.0.2"), service("ns", "headless", v1.ClusterIPNone), service("else", "other", "10.0.0.3"))}}
	pod := testPod("uid-1")
	pod.Namespace = "ns"
	names := func() (all []string) {
		got, err := r.serviceVariables(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range got {
			all = append(all, v.Name+"="+v.Value)
		}
		return all
	}
	with := names()
	for _, want := range []string{"MY_WEB_SERVICE_HOST=10.0.0.2", "MY_WEB_SERVICE_PORT=80", "MY_WEB_SERVICE_PORT_HTTP=80", "MY_WEB_PORT=tcp://10.0.0.2:80", "MY_WEB_PORT_80_TCP_ADDR=10.0.0.2", "KUBERNETES_SERVICE_HOST=10.0.0.1"} {
		if !slices.Contains(with, want) {
			t.Errorf("got %v, want %s", with, want)
		}
	}
	if slices.ContainsFunc(with, func(v string) bool { return strings.HasPrefix(v, "OTHER_") || strings.HasPrefix(v, "HEADLESS_") }) {
		t.Errorf("got %v, want neither headless services nor those of other namespaces", with)
	}
	pod.Spec.EnableServiceLinks = new(bool)
	if without := names(); slices.ContainsFunc(without, func(v string) bool { return !strings.HasPrefix(v, "KUBERNETES_") }) {
		t.Errorf("without links: got %v, want the API server alone", without)
	}
}

// A namespace may have a service of the name of the API server's: pods there get its own, as from a kubelet.
func TestServiceVariables_OfAServiceNamedKubernetes(t *testing.T) {
	service := func(namespace, ip string) *v1.Service {
		return &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kubernetes"}, Spec: v1.ServiceSpec{ClusterIP: ip, Ports: []v1.ServicePort{{Port: 443}}}}
	}
	n := newNode(t)
	n.options.Client = clients.NewClientset(service("default", "10.0.0.1"), service("ns", "10.0.0.9"))
	pod := testPod("uid-1")
	pod.Namespace = "ns"
	id := n.start(pod)
	var got []string
	for _, v := range n.fake.configs[bareID(id)].Envs {
		if v.Key == "KUBERNETES_SERVICE_HOST" {
			got = append(got, string(v.Value))
		}
	}
	if !slices.Equal(got, []string{"10.0.0.9"}) {
		t.Errorf("got %v, want 10.0.0.9 once", got)
	}
}

func TestStrictGroups_WithoutSupport_AreRejected(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	policy := v1.SupplementalGroupsPolicyStrict
	pod.Spec.SecurityContext = &v1.PodSecurityContext{SupplementalGroupsPolicy: &policy}
	if reason, _ := n.Admit(pod); reason != "SupplementalGroupsPolicyNotSupported" {
		t.Errorf("an old container runtime: got %q, want the pod rejected", reason)
	}
	n.fake.change(func() { n.fake.features = &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true} })
	n.open()
	if reason, message := n.Admit(pod); reason != "" {
		t.Errorf("a container runtime with the policy: got %s: %s", reason, message)
	}
}

// The container runtime refuses a privileged container in a sandbox that has none, and kubectl debug adds one later.
func TestPrivilegedEphemeralContainer(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	n.start(pod)
	debugger := v1.Container{Name: "debugger", Image: "web:1", SecurityContext: &v1.SecurityContext{Privileged: new(true)}}
	pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon(debugger)}}
	id, err := n.StartContainer(t.Context(), pod, &debugger, 0)
	if err != nil {
		t.Fatal(err)
	}
	if config := n.fake.places[bareID(id)]; !config.Linux.SecurityContext.Privileged {
		t.Errorf("got a sandbox without privileges: %v", config.Linux.SecurityContext)
	}
}

func TestLongHostName_IsAnError(t *testing.T) {
	n := newNode(t)
	n.options.ClusterDomain = "cluster.local"
	pod := testPod("uid-1")
	pod.Spec.Hostname, pod.Spec.Subdomain, pod.Spec.SetHostnameAsFQDN = "web", strings.Repeat("s", 60), new(true)
	if err := n.StartPod(t.Context(), pod); err == nil || !strings.Contains(err.Error(), "64 characters is the max") {
		t.Errorf("got %v, want an error with the limit", err)
	}
}

func TestCredentialsMatch(t *testing.T) {
	for _, c := range []struct {
		registry, image string
		want            bool
	}{
		{"registry.example.com", "registry.example.com/web:1", true},
		{"https://registry.example.com/v1/", "registry.example.com/web:1", true},
		{"registry.example.com/team", "registry.example.com/team/web:1", true},
		{"registry.example.com/team", "registry.example.com/teams/web:1", false},
		{"*.example.com", "registry.example.com/web:1", true},
		{"*.example.com", "a.b.example.com/web:1", false},
		{"registry.example.com", "registry.example.com:5000/web:1", false},
		{"https://index.docker.io/v1/", "web:1", true},
		{"registry.example.com", "web:1", false},
	} {
		if got := matches(c.registry, c.image); got != c.want {
			t.Errorf("%s for %s: got %v", c.registry, c.image, got)
		}
	}
}

func TestSysctls(t *testing.T) {
	for name, want := range map[string]string{"net.ipv4.ip_unprivileged_port_start": "", "kernel.msgmax": "SysctlForbidden", "net/core/somaxconn": "SysctlForbidden"} {
		pod := testPod("uid-1")
		pod.Spec.SecurityContext = &v1.PodSecurityContext{Sysctls: []v1.Sysctl{{Name: name, Value: "1"}}}
		if got, _ := (&Runtime{}).Admit(pod); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestPodOfAnotherSystem(t *testing.T) {
	pod := testPod("uid-1")
	pod.Spec.OS = &v1.PodOS{Name: v1.Windows}
	if got, _ := (&Runtime{}).Admit(pod); got != "PodOSNotSupported" {
		t.Errorf("got %q, want it rejected", got)
	}
}

func TestSysctlNames(t *testing.T) {
	for name, want := range map[string]string{"kernel.shm_rmid_forced": "kernel.shm_rmid_forced", "kernel/shm_rmid_forced": "kernel.shm_rmid_forced", "net/ipv4/conf/eth0.1/forwarding": "net.ipv4.conf.eth0/1.forwarding"} {
		if got := dotted(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestResources(t *testing.T) {
	list := func(cpu, memory string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
	}
	pod := testPod("uid-1")
	c := &pod.Spec.Containers[0]
	if got := containerResources(pod, c); got.CpuShares != 2 || got.CpuQuota != 0 || got.MemoryLimitInBytes != 0 || got.OomScoreAdj != 1000 {
		t.Errorf("best effort: got %v", got)
	}
	c.Resources = v1.ResourceRequirements{Requests: list("500m", "64Mi"), Limits: list("500m", "64Mi")}
	if got := containerResources(pod, c); got.CpuShares != 512 || got.CpuQuota != 50_000 || got.MemoryLimitInBytes != 64<<20 || got.OomScoreAdj != oomCritical {
		t.Errorf("guaranteed: got %v", got)
	}
	g := &groups{parent: "/node"}
	if got := g.parentOf(pod); got != "/node/kubepods/poduid-1" {
		t.Errorf("guaranteed: got group %s", got)
	}
	c.Resources.Requests = list("100m", "32Mi")
	if got := containerResources(pod, c).OomScoreAdj; got < 3 || got > 999 {
		t.Errorf("burstable: got OOM score %d", got)
	}
	g.systemd = true
	if got := g.parentOf(pod); got != "kubepods-burstable-poduid_1.slice" {
		t.Errorf("burstable: got slice %s", got)
	}
}

func TestUnsupportedIsNamed(t *testing.T) {
	pod := testPod("uid-1")
	pod.Spec.Volumes = []v1.Volume{{Name: "disk", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{}}}, {Name: "ok", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeDevices = []v1.VolumeDevice{{Name: "disk"}}
	var fields []string
	for _, u := range (Checker{}).Check(pod) {
		fields = append(fields, u.Field)
	}
	slices.Sort(fields)
	if want := []string{"spec.containers[0].volumeDevices", "spec.volumes[0].persistentVolumeClaim"}; !slices.Equal(fields, want) {
		t.Errorf("got %v, want %v", fields, want)
	}
}
