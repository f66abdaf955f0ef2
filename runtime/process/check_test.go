package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/statusd/statusd/internal/cgroup"
	"github.com/statusd/statusd/runtime"
)

// class says who honors a field of the API.
type class struct {
	name string
	// test shows that it is honored: a test of this module, or a part of the conformance suite.
	test string
	// ask makes a pod ask for what is rejected, and path is the field that must be named.
	ask  func(*v1.Pod)
	path string
}

var parent = class{name: "a parent's"} // its own fields are classed below

// supported is for what this runtime honors.
func supported(test string) class { return class{name: "supported", test: test} }

// others is for what other parts of statusd honor.
func others(test string) class { return class{name: "others'", test: test} }

// elsewhere is for what the cluster does before a pod reaches a node, or what has no meaning
// where nothing is pulled.
func elsewhere(who string) class { return class{name: "elsewhere: " + who} }

func rejected(path string, ask func(*v1.Pod)) class {
	return class{name: "rejected", path: path, ask: ask}
}

func ptr[T any](value T) *T { return &value }

// container and its neighbors are what the tables change.
func container0(pod *v1.Pod) *v1.Container { return &pod.Spec.Containers[0] }

func security(pod *v1.Pod) *v1.SecurityContext {
	c := container0(pod)
	if c.SecurityContext == nil {
		c.SecurityContext = &v1.SecurityContext{}
	}
	return c.SecurityContext
}

func podSecurity(pod *v1.Pod) *v1.PodSecurityContext {
	if pod.Spec.SecurityContext == nil {
		pod.Spec.SecurityContext = &v1.PodSecurityContext{}
	}
	return pod.Spec.SecurityContext
}

func addMount(pod *v1.Pod, mount v1.VolumeMount) {
	mount.Name = "data"
	mount.MountPath = "/data"
	container0(pod).VolumeMounts = []v1.VolumeMount{mount}
}

func addVariable(pod *v1.Pod, from v1.EnvVarSource) {
	container0(pod).Env = []v1.EnvVar{{Name: "A", ValueFrom: &from}}
}

func someResources() v1.ResourceList {
	return v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}
}

// classes decides on every field that can reach a runtime.
var classes = map[reflect.Type]map[string]class{
	reflect.TypeFor[v1.PodSpec](): {
		"Volumes": parent, "InitContainers": parent, "Containers": parent, "SecurityContext": parent, "Resources": parent,
		"EphemeralContainers": others("TestEphemeralContainer_RunsOnce"),
		"DNSPolicy":           supported("TestAPodHasItsOwnNames"),
		"DNSConfig":           supported("TestAPodHasItsOwnNames"),
		"Hostname":            supported("TestAContainerHasTheHostNameOfItsPod"),
		"Subdomain":           elsewhere("the DNS of the cluster, by the endpoints of a service"),
		"SetHostnameAsFQDN":   rejected("spec.setHostnameAsFQDN", func(p *v1.Pod) { p.Spec.SetHostnameAsFQDN = ptr(true) }),
		"HostnameOverride":    rejected("spec.hostnameOverride", func(p *v1.Pod) { p.Spec.HostnameOverride = ptr("a") }),
		"HostAliases":         supported("TestAPodHasItsOwnNames"),
		"RuntimeClassName":    rejected("spec.runtimeClassName", func(p *v1.Pod) { p.Spec.RuntimeClassName = ptr("kata") }),
		"OS":                  rejected("spec.os.name", func(p *v1.Pod) { p.Spec.OS = &v1.PodOS{Name: v1.Windows} }),
		"HostUsers":           rejected("spec.hostUsers", func(p *v1.Pod) { p.Spec.HostUsers = ptr(false) }),
		"ResourceClaims":      rejected("spec.resourceClaims", func(p *v1.Pod) { p.Spec.ResourceClaims = []v1.PodResourceClaim{{}} }),
		"HostNetwork":         supported("TestAPodThatExpectsIsolationIsRejected"), "HostPID": supported("TestAPodThatExpectsIsolationIsRejected"), "HostIPC": supported("TestAPodThatExpectsIsolationIsRejected"), "ShareProcessNamespace": supported("TestContainersSeeEachOther"),
		"RestartPolicy": others("TestRestartPolicies"), "TerminationGracePeriodSeconds": others("TestADeletedPodEndsWithinItsGrace"), "ActiveDeadlineSeconds": others("TestActiveDeadline"),
		"NodeSelector": others("TestCheck"), "NodeName": others("TestPodsOfThisNodeOnARealServer"), "Affinity": others("TestCheck"), "SchedulerName": elsewhere("the scheduler"), "Tolerations": others("TestCheck"),
		"PriorityClassName": elsewhere("the API server, which makes it a priority"), "Priority": others("TestResizesAreGrantedInTheOrderOfTheKubelet"), "PreemptionPolicy": elsewhere("the scheduler"), "Overhead": others("TestRequests"),
		"TopologySpreadConstraints": elsewhere("the scheduler"), "SchedulingGates": elsewhere("the scheduler"), "SchedulingGroup": elsewhere("the scheduler"), "ReadinessGates": others("TestReadinessGatesSeeTheConditionsOfOthers"),
		// The API server turns the last one into a volume.
		"ServiceAccountName": supported("TestTokensAreRenewedInTime"), "DeprecatedServiceAccount": elsewhere("the API server, which copies it to serviceAccountName"), "AutomountServiceAccountToken": others("TestRestrictedPod_RunsAndFollowsItsSecret"),
		"ImagePullSecrets":   elsewhere("nothing is pulled"),
		"EnableServiceLinks": elsewhere("documented: only the API server is named"), //
	},
	reflect.TypeFor[v1.Container](): {
		"Resources": parent, "Ports": parent, "Env": parent, "VolumeMounts": parent, "Lifecycle": parent, "SecurityContext": parent,
		"Name": supported("TestConformance/RunningContainerIsListed"), "Args": supported("TestConformance/Expansion"), "TerminationMessagePolicy": supported("TestConformance/TerminationMessageFromLogs"),
		"TerminationMessagePath": rejected("spec.containers[0].terminationMessagePath", func(p *v1.Pod) {
			container0(p).TerminationMessagePath = "x/term"
		}),
		"Image":         rejected("spec.containers[0].image", func(p *v1.Pod) { container0(p).Image = "nginx" }),
		"Command":       rejected("spec.containers[0].command", func(p *v1.Pod) { container0(p).Command = nil }),
		"WorkingDir":    rejected("spec.containers[0].workingDir", func(p *v1.Pod) { container0(p).WorkingDir = "here" }),
		"EnvFrom":       supported("TestEnvironmentFromObjects"),
		"VolumeDevices": rejected("spec.containers[0].volumeDevices", func(p *v1.Pod) { container0(p).VolumeDevices = []v1.VolumeDevice{{}} }),
		"Stdin":         supported("TestAttachSeesWhatTheContainerWritesAndWritesWhatItReads"),
		"StdinOnce":     supported("TestAttachSeesWhatTheContainerWritesAndWritesWhatItReads"),
		"TTY":           supported("TestAContainerCanHaveATerminal"),
		"ResizePolicy":  others("TestAResizeRestartsAContainerThatAsksForIt"), "RestartPolicy": others("TestASidecarIsStartedFirstAndKeptRunning"), "RestartPolicyRules": others("TestARuleCanRestartAllContainers"),
		"LivenessProbe": others("TestUnhealthyContainersAreStoppedAndStartedAgain"), "ReadinessProbe": others("TestReadyOnlyAsTheProbesFound"), "StartupProbe": others("TestStartedIsToldBeforeReady"),
		"ImagePullPolicy": elsewhere("nothing is pulled"),
	},
	reflect.TypeFor[v1.PodSecurityContext](): {
		"RunAsUser": supported("TestAContainerRunsAsItsUser"), "RunAsGroup": supported("TestAContainerRunsAsItsUser"), "RunAsNonRoot": supported("TestRootIsRefusedWithTheKubeletsWords"), "FSGroup": supported("TestOwnersOfAVolume"),
		"SupplementalGroups": supported("TestUserOfAContainer"), "SupplementalGroupsPolicy": supported("TestUserOfAContainer"),
		"FSGroupChangePolicy": supported("TestOwnersOfAVolume"),                 // emptyDir volumes are always new
		"SELinuxChangePolicy": elsewhere("says nothing without seLinuxOptions"), // says nothing without seLinuxOptions
		"SELinuxOptions":      rejected("spec.securityContext.seLinuxOptions", func(p *v1.Pod) { podSecurity(p).SELinuxOptions = &v1.SELinuxOptions{} }),
		"WindowsOptions": rejected("spec.securityContext.windowsOptions", func(p *v1.Pod) {
			podSecurity(p).WindowsOptions = &v1.WindowsSecurityContextOptions{}
		}),
		"Sysctls": rejected("spec.securityContext.sysctls", func(p *v1.Pod) { podSecurity(p).Sysctls = []v1.Sysctl{{}} }),
		"SeccompProfile": rejected("spec.securityContext.seccompProfile", func(p *v1.Pod) {
			podSecurity(p).SeccompProfile = &v1.SeccompProfile{Type: v1.SeccompProfileTypeLocalhost}
		}),
		"AppArmorProfile": rejected("spec.securityContext.appArmorProfile", func(p *v1.Pod) {
			podSecurity(p).AppArmorProfile = &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeRuntimeDefault}
		}),
	},
	reflect.TypeFor[v1.SecurityContext](): {
		"RunAsUser": supported("TestAContainerRunsAsItsUser"), "RunAsGroup": supported("TestUserOfAContainer"), "RunAsNonRoot": supported("TestRootIsRefusedWithTheKubeletsWords"), "Privileged": supported("TestWithoutRootNoOtherUserIsOffered"),
		"Capabilities":   parent,
		"SELinuxOptions": rejected("spec.containers[0].securityContext.seLinuxOptions", func(p *v1.Pod) { security(p).SELinuxOptions = &v1.SELinuxOptions{} }),
		"WindowsOptions": rejected("spec.containers[0].securityContext.windowsOptions", func(p *v1.Pod) {
			security(p).WindowsOptions = &v1.WindowsSecurityContextOptions{}
		}),
		"ReadOnlyRootFilesystem":   supported("TestAReadOnlyRootKeepsAllButVolumes"),
		"AllowPrivilegeEscalation": supported("TestAConfinedContainerHasNothingToGain"),
		"ProcMount":                rejected("spec.containers[0].securityContext.procMount", func(p *v1.Pod) { security(p).ProcMount = ptr(v1.UnmaskedProcMount) }),
		"SeccompProfile": rejected("spec.containers[0].securityContext.seccompProfile", func(p *v1.Pod) {
			security(p).SeccompProfile = &v1.SeccompProfile{Type: v1.SeccompProfileTypeLocalhost}
		}),
		"AppArmorProfile": rejected("spec.containers[0].securityContext.appArmorProfile", func(p *v1.Pod) {
			security(p).AppArmorProfile = &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeLocalhost}
		}),
	},
	reflect.TypeFor[v1.Capabilities](): {
		"Add": rejected("spec.containers[0].securityContext.capabilities.add[0]", func(p *v1.Pod) {
			security(p).Capabilities = &v1.Capabilities{Add: []v1.Capability{"NONE_SUCH"}}
		}),
		"Drop": rejected("spec.containers[0].securityContext.capabilities.drop[0]", func(p *v1.Pod) {
			security(p).Capabilities = &v1.Capabilities{Drop: []v1.Capability{"NONE_SUCH"}}
		}),
	},
	reflect.TypeFor[v1.VolumeMount](): {
		"Name": supported("TestConformance/EmptyDirIsShared"), "MountPath": supported("TestConformance/EmptyDirIsShared"), "SubPath": supported("TestConformance/SubPath"),
		"ReadOnly":          supported("TestVolumesAreAtTheirMountPaths"),
		"RecursiveReadOnly": supported("TestVolumesAreAtTheirMountPaths"),
		"MountPropagation": rejected("spec.containers[0].volumeMounts[0].mountPropagation", func(p *v1.Pod) {
			addMount(p, v1.VolumeMount{MountPropagation: ptr(v1.MountPropagationBidirectional)})
		}),
		"SubPathExpr": supported("TestASubPathIsAsOpenAsItsVolume"),
	},
	reflect.TypeFor[v1.EnvVar](): {
		"Value": supported("TestConformance/Environment"), "ValueFrom": parent,
		"Name": rejected("spec.containers[0].env[0].name", func(p *v1.Pod) {
			container0(p).Env = []v1.EnvVar{{Name: "STATUSD_CONTAINER_ID", Value: "mine"}}
		}),
	},
	reflect.TypeFor[v1.EnvVarSource](): {
		"FieldRef": rejected("spec.containers[0].env[0].valueFrom.fieldRef.fieldPath", func(p *v1.Pod) {
			addVariable(p, v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "status.phase"}})
		}),
		"ResourceFieldRef": rejected("spec.containers[0].env[0].valueFrom.resourceFieldRef.resource", func(p *v1.Pod) {
			addVariable(p, v1.EnvVarSource{ResourceFieldRef: &v1.ResourceFieldSelector{Resource: "limits.example.com/gpu"}})
		}),
		"ConfigMapKeyRef": supported("TestEnvironmentFromObjects"), "SecretKeyRef": supported("TestEnvironmentFromObjects"),
		"FileKeyRef": rejected("spec.containers[0].env[0].valueFrom.fileKeyRef", func(p *v1.Pod) {
			addVariable(p, v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{}})
		}),
	},
	reflect.TypeFor[v1.ContainerPort](): {
		"Name": others("TestPortsByNumberAndName"), "ContainerPort": others("TestCheck"), "Protocol": others("TestCheck"),
		"HostPort": rejected("spec.containers[0].ports[0].hostPort", func(p *v1.Pod) {
			container0(p).Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
		}),
		"HostIP": rejected("spec.containers[0].ports[0].hostIP", func(p *v1.Pod) {
			container0(p).Ports = []v1.ContainerPort{{ContainerPort: 80, HostIP: "127.0.0.1"}}
		}),
	},
	reflect.TypeFor[v1.ResourceRequirements](): {
		"Limits": rejected("spec.containers[0].resources.limits[ephemeral-storage]", func(p *v1.Pod) {
			container0(p).Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("1Gi")}
		}),
		"Requests": rejected("spec.containers[0].resources.requests[example.com/gpu]", func(p *v1.Pod) {
			container0(p).Resources.Requests = v1.ResourceList{"example.com/gpu": resource.MustParse("1")}
		}),
		"Claims": rejected("spec.containers[0].resources.claims", func(p *v1.Pod) { container0(p).Resources.Claims = []v1.ResourceClaim{{}} }),
	},
	reflect.TypeFor[v1.Lifecycle](): {
		"PostStart": others("TestPostStart"), "PreStop": others("TestPreStopRunsWithinTheGrace"),
		"StopSignal": rejected("spec.containers[0].lifecycle.stopSignal", func(p *v1.Pod) {
			container0(p).Lifecycle = &v1.Lifecycle{StopSignal: ptr(v1.Signal("SIGNONE"))}
		}),
	},
	reflect.TypeFor[v1.Volume]():               {"Name": supported("TestConformance/EmptyDirIsShared"), "VolumeSource": parent},
	reflect.TypeFor[v1.HostPathVolumeSource](): {"Path": supported("TestHostPathTypes"), "Type": supported("TestHostPathTypes")},
	reflect.TypeFor[v1.EmptyDirVolumeSource](): {
		"Medium":    rejected("spec.volumes[0].emptyDir.medium", func(p *v1.Pod) { p.Spec.Volumes[0].EmptyDir.Medium = v1.StorageMediumHugePages }),
		"SizeLimit": others("TestAVolumeOverItsLimit"),
	},
}

// plainPod asks for as much as the runtime can do.
func plainPod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: "default", UID: "plain-uid"},
		Spec: v1.PodSpec{
			RestartPolicy: v1.RestartPolicyAlways, DNSPolicy: v1.DNSClusterFirst, HostNetwork: true, HostPID: true, HostIPC: true,
			ServiceAccountName: "default", EnableServiceLinks: ptr(true), OS: &v1.PodOS{Name: v1.Linux}, HostUsers: ptr(true),
			Volumes: []v1.Volume{
				{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
				{Name: "etc", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/etc", Type: ptr(v1.HostPathDirectory)}}},
			},
			InitContainers: []v1.Container{{Name: "init", Image: Image, Command: []string{"true"}}},
			Containers: []v1.Container{{
				Name: "main", Image: Image, Command: []string{"true"}, Args: []string{"$(A)"}, WorkingDir: "/tmp", ImagePullPolicy: v1.PullIfNotPresent,
				Ports:        []v1.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: v1.ProtocolTCP}},
				Env:          []v1.EnvVar{{Name: "A", Value: "b"}},
				Resources:    v1.ResourceRequirements{Requests: someResources()},
				VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/data", SubPath: "a", MountPropagation: ptr(v1.MountPropagationNone)}},
				Lifecycle:    &v1.Lifecycle{StopSignal: ptr(v1.Signal("SIGRTMIN+3")), PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 1}}},
				LivenessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{
					TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(80)},
				}},
				SecurityContext: &v1.SecurityContext{
					RunAsUser: ptr(int64(1000)), Privileged: ptr(false), AllowPrivilegeEscalation: ptr(true),
					SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeUnconfined},
				},
			}},
			SecurityContext: &v1.PodSecurityContext{RunAsNonRoot: ptr(true), FSGroup: ptr(int64(2000)), SupplementalGroups: []int64{3000}},
		},
	}
}

// ableRuntime can do all that the runtime can do anywhere.
func ableRuntime() *Runtime {
	return &Runtime{state: &state{root: true, views: true}, options: Options{Objects: newFakeObjects()}, groups: &groups{hierarchy: &cgroup.Hierarchy{}}}
}

func check(pod *v1.Pod) []string { return checkWith(ableRuntime(), pod) }

func checkWith(r *Runtime, pod *v1.Pod) []string {
	var fields []string
	for _, u := range r.Check(pod) {
		fields = append(fields, u.Field)
	}
	return fields
}

func TestEveryFieldOfThePodIsClassed(t *testing.T) {
	for structure, fields := range classes {
		for i := range structure.NumField() {
			if name := structure.Field(i).Name; fields[name].name == "" {
				t.Errorf("%s.%s is in no class: decide whether the runtime supports it, another part does, or Check rejects it", structure, name)
			}
		}
		for name := range fields {
			if _, exists := structure.FieldByName(name); !exists {
				t.Errorf("%s.%s is classed, but the API has no such field", structure, name)
			}
		}
	}
}

// A claim that a field is honored names the test that shows it.
func TestEveryClaimHasATest(t *testing.T) {
	tests := testsOfTheModule(t)
	for structure, fields := range classes {
		for name, class := range fields {
			if (class.name == "supported" || class.name == "others'") && !tests[class.test] {
				t.Errorf("%s.%s is said to be shown by %q, which is no test of this module", structure, name, class.test)
			}
		}
	}
}

// testsOfTheModule finds the names of all tests, and of the parts of the conformance suite.
func testsOfTheModule(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	add := func(text []byte, pattern, prefix string) {
		for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			tests[prefix+string(match[1])] = true
		}
	}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // what tests of other packages make and remove meanwhile is no test
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		suite := strings.HasSuffix(path, "runtimetest/suite.go")
		if !suite && !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		add(text, `(?m)^func (Test\w+)\(`, "")
		if suite {
			add(text, `\{"(\w+)", test`, "TestConformance/")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

func TestEveryRejectedFieldIsNamed(t *testing.T) {
	for structure, fields := range classes {
		for name, class := range fields {
			if class.ask == nil {
				continue
			}
			pod := plainPod()
			class.ask(pod)
			if got := check(pod); !slices.Equal(got, []string{class.path}) {
				t.Errorf("%s.%s: Check names %q, want %q", structure, name, got, class.path)
			}
		}
	}
}

func TestWhatTheRuntimeCanDoIsNotRejected(t *testing.T) {
	if got := ableRuntime().Check(plainPod()); len(got) > 0 {
		t.Errorf("Check rejects %s", runtime.Describe(got))
	}
}

func TestEveryOtherKindOfVolumeIsRejectedByName(t *testing.T) {
	kinds := reflect.TypeFor[v1.VolumeSource]()
	for i := range kinds.NumField() {
		kind := kinds.Field(i)
		pod := plainPod()
		pod.Spec.Volumes[0].VolumeSource = v1.VolumeSource{}
		reflect.ValueOf(&pod.Spec.Volumes[0].VolumeSource).Elem().Field(i).Set(reflect.New(kind.Type.Elem()))
		name, _, _ := strings.Cut(kind.Tag.Get("json"), ",")
		want := []string{"spec.volumes[0]." + name}
		switch name {
		case "emptyDir", "hostPath", "configMap", "secret", "downwardAPI", "projected":
			want = nil
		}
		if got := check(pod); !slices.Equal(got, want) {
			t.Errorf("volume of kind %s: Check names %q, want %q", kind.Name, got, want)
		}
	}
}

// Where nothing can be mounted, what needs it is rejected.
func TestWithoutViewsNothingIsReadOnly(t *testing.T) {
	pod := plainPod()
	pod.Spec.Hostname = "web-0"
	security(pod).ReadOnlyRootFilesystem = ptr(true)
	addMount(pod, v1.VolumeMount{ReadOnly: true, RecursiveReadOnly: ptr(v1.RecursiveReadOnlyIfPossible)})
	if got := check(pod); len(got) > 0 {
		t.Errorf("where it can be done: got %q", got)
	}
	unable := ableRuntime()
	unable.views = false
	want := []string{
		"spec.hostname", "spec.containers[0].volumeMounts[0].readOnly", "spec.containers[0].volumeMounts[0].recursiveReadOnly",
		"spec.containers[0].securityContext.readOnlyRootFilesystem",
	}
	if got := checkWith(unable, pod); !slices.Equal(got, want) {
		t.Errorf("where it cannot: got %q, want %q", got, want)
	}
}

// A pod that needs a view of its own for what other nodes do for it waits with the name of the field.
func TestWithoutViewsThereIsNothingOfItsOwn(t *testing.T) {
	pod := plainPod()
	pod.Spec.DNSPolicy, pod.Spec.DNSConfig = v1.DNSNone, &v1.PodDNSConfig{Nameservers: []string{"192.0.2.1"}}
	pod.Spec.HostAliases = []v1.HostAlias{{IP: "192.0.2.1", Hostnames: []string{"a"}}}
	pod.Spec.Volumes[0].EmptyDir.Medium = v1.StorageMediumMemory
	container0(pod).TerminationMessagePath = "/x/term"
	if got := check(pod); len(got) > 0 {
		t.Errorf("where it can be done: got %q", got)
	}
	unable := ableRuntime()
	unable.views = false
	unable.noMemory = unable.memoryProblem()
	want := []string{"spec.dnsPolicy", "spec.dnsConfig", "spec.hostAliases", "spec.volumes[0].emptyDir.medium", "spec.containers[0].terminationMessagePath"}
	if got := checkWith(unable, pod); !slices.Equal(got, want) {
		t.Errorf("where it cannot: got %q, want %q", got, want)
	}
	for _, policy := range []v1.DNSPolicy{v1.DNSDefault, v1.DNSClusterFirst, v1.DNSClusterFirstWithHostNet} {
		pod := plainPod()
		pod.Spec.DNSPolicy = policy
		if got := checkWith(unable, pod); len(got) > 0 {
			t.Errorf("%s means the resolver of the machine: got %q", policy, got)
		}
	}
}

// A termination log is not made where the container may not write.
func TestTerminationMessagePathInAReadOnlyVolume(t *testing.T) {
	pod := plainPod()
	container0(pod).TerminationMessagePath = "/data/message"
	if got := check(pod); len(got) > 0 {
		t.Errorf("in a volume that can be written: got %q", got)
	}
	container0(pod).VolumeMounts[0].ReadOnly = true
	if got := check(pod); !slices.Equal(got, []string{"spec.containers[0].terminationMessagePath"}) {
		t.Errorf("got %q", got)
	}
}

func TestInitContainersAreCheckedToo(t *testing.T) {
	pod := plainPod()
	pod.Spec.InitContainers[0].Image = "busybox"
	got := ableRuntime().Check(pod)
	want := `spec.initContainers[0].image: image "busybox" cannot be run: containers are processes of this machine, so the image must be "host"`
	if runtime.Describe(got) != want {
		t.Errorf("got %s, want %s", runtime.Describe(got), want)
	}
}

func TestMountsMustNotShareAVariable(t *testing.T) {
	for _, c := range []struct {
		story  string
		mounts []v1.VolumeMount
		want   []string
	}{
		{"one volume at two paths", []v1.VolumeMount{{Name: "data", MountPath: "/a"}, {Name: "data", MountPath: "/b"}}, nil},
		{"two paths, one variable", []v1.VolumeMount{{Name: "data", MountPath: "/a-b"}, {Name: "data", MountPath: "/a_b"}},
			[]string{"spec.containers[0].volumeMounts[1].mountPath"}},
		{"two volumes, one variable", []v1.VolumeMount{{Name: "a-b", MountPath: "/a"}, {Name: "a--b", MountPath: "/b"}},
			[]string{"spec.containers[0].volumeMounts[1].name"}},
	} {
		pod := plainPod()
		container0(pod).VolumeMounts = c.mounts
		if got := check(pod); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.story, got, c.want)
		}
	}
}

func TestWithoutRootNoOtherUserIsOffered(t *testing.T) {
	pod := plainPod()
	security(pod).Privileged = ptr(true)
	podSecurity(pod).RunAsUser = ptr(int64(1 << 20))
	podSecurity(pod).RunAsGroup = ptr(int64(1 << 20))
	security(pod).RunAsUser = ptr(int64(1 << 20))
	var got []string
	for _, u := range (&Runtime{state: &state{}}).Check(pod) {
		got = append(got, u.Field)
	}
	var want []string
	for _, path := range []string{
		"securityContext.runAsUser", "securityContext.runAsGroup", "securityContext.supplementalGroups", "securityContext.fsGroup",
		"containers[0].securityContext.runAsUser", "containers[0].securityContext.privileged",
	} {
		want = append(want, "spec."+path)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAVolumeCannotNameAnotherDirectory(t *testing.T) {
	h := newHost(t)
	h.open(t)
	pod := scriptPod("pod", "true")
	pod.Spec.Volumes = []v1.Volume{{Name: "../../../outside", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	if err := h.StartPod(t.Context(), pod); err == nil {
		t.Error("got no error")
	}
	if _, err := os.Stat(filepath.Join(h.dir, "outside")); err == nil {
		t.Error("a directory was made outside of the pod")
	}
}
