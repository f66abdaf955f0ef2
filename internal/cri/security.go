package cri

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// seccompDir has the profiles that pods name with type Localhost, as with the kubelet.
const seccompDir = "/var/lib/kubelet/seccomp"

// Paths of /proc and /sys that a container neither sees nor writes, unless it asks for procMount Unmasked.
var (
	maskedPaths = []string{
		"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
		"/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware",
	}
	readOnlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// namespaces are those of a pod's containers.
func namespaces(pod *v1.Pod) *runtimeapi.NamespaceOption {
	n := &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_POD, Ipc: runtimeapi.NamespaceMode_POD, Pid: runtimeapi.NamespaceMode_CONTAINER}
	if pod.Spec.HostNetwork {
		n.Network = runtimeapi.NamespaceMode_NODE
	}
	if pod.Spec.HostIPC {
		n.Ipc = runtimeapi.NamespaceMode_NODE
	}
	switch {
	case pod.Spec.HostPID:
		n.Pid = runtimeapi.NamespaceMode_NODE
	case isTrue(pod.Spec.ShareProcessNamespace):
		n.Pid = runtimeapi.NamespaceMode_POD
	}
	return n
}

// sandboxSecurity is what holds for all containers of a pod.
func sandboxSecurity(pod *v1.Pod) *runtimeapi.LinuxSandboxSecurityContext {
	security := &runtimeapi.LinuxSandboxSecurityContext{
		NamespaceOptions: namespaces(pod),
		Privileged: slices.ContainsFunc(eachContainer(pod), func(c *v1.Container) bool {
			return c.SecurityContext != nil && isTrue(c.SecurityContext.Privileged)
		}),
		Seccomp: &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
	}
	context := pod.Spec.SecurityContext
	if context == nil {
		return security
	}
	if context.RunAsUser != nil {
		security.RunAsUser = &runtimeapi.Int64Value{Value: *context.RunAsUser}
		if context.RunAsGroup != nil {
			security.RunAsGroup = &runtimeapi.Int64Value{Value: *context.RunAsGroup}
		}
	}
	security.SupplementalGroups = supplementalGroups(context)
	security.SelinuxOptions = selinux(context.SELinuxOptions)
	return security
}

func supplementalGroups(context *v1.PodSecurityContext) []int64 {
	if context == nil {
		return nil
	}
	groups := slices.Clone(context.SupplementalGroups)
	if context.FSGroup != nil {
		groups = append(groups, *context.FSGroup)
	}
	return groups
}

func groupsPolicy(context *v1.PodSecurityContext) runtimeapi.SupplementalGroupsPolicy {
	if context != nil && context.SupplementalGroupsPolicy != nil && *context.SupplementalGroupsPolicy == v1.SupplementalGroupsPolicyStrict {
		return runtimeapi.SupplementalGroupsPolicy_Strict
	}
	return runtimeapi.SupplementalGroupsPolicy_Merge
}

func selinux(options *v1.SELinuxOptions) *runtimeapi.SELinuxOption {
	if options == nil {
		return nil
	}
	return &runtimeapi.SELinuxOption{User: options.User, Role: options.Role, Type: options.Type, Level: options.Level}
}

// containerSecurity is the effective security context of a container: its own values, else the pod's, else the image's.
func containerSecurity(pod *v1.Pod, container *v1.Container, image *runtimeapi.Image) (*runtimeapi.LinuxContainerSecurityContext, error) {
	own, shared := container.SecurityContext, pod.Spec.SecurityContext
	if own == nil {
		own = &v1.SecurityContext{}
	}
	if shared == nil {
		shared = &v1.PodSecurityContext{}
	}
	security := &runtimeapi.LinuxContainerSecurityContext{
		NamespaceOptions:         namespaces(pod),
		Privileged:               isTrue(own.Privileged),
		ReadonlyRootfs:           isTrue(own.ReadOnlyRootFilesystem),
		SupplementalGroups:       supplementalGroups(shared),
		SupplementalGroupsPolicy: groupsPolicy(shared),
		SelinuxOptions:           selinux(first(own.SELinuxOptions, shared.SELinuxOptions)),
		NoNewPrivs:               own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation,
		Seccomp:                  profile(first(own.SeccompProfile, shared.SeccompProfile)),
		Apparmor:                 appArmor(first(own.AppArmorProfile, shared.AppArmorProfile)),
	}
	if security.Privileged {
		security.Seccomp = profile(nil)
	}
	if own.ProcMount == nil || *own.ProcMount != v1.UnmaskedProcMount {
		security.MaskedPaths, security.ReadonlyPaths = maskedPaths, readOnlyPaths
	}
	if c := own.Capabilities; c != nil {
		security.Capabilities = &runtimeapi.Capability{AddCapabilities: capabilities(c.Add), DropCapabilities: capabilities(c.Drop)}
	}
	user := first(own.RunAsUser, shared.RunAsUser)
	setUser(security, user, image)
	if group := first(own.RunAsGroup, shared.RunAsGroup); group != nil {
		security.RunAsGroup = &runtimeapi.Int64Value{Value: *group}
	}
	return security, checkNonRoot(security, pod, container, isTrue(first(own.RunAsNonRoot, shared.RunAsNonRoot)), user)
}

func first[T any](pointers ...*T) *T {
	for _, p := range pointers {
		if p != nil {
			return p
		}
	}
	return nil
}

// setUser sets the user of the pod's security context, or else the user of the image.
func setUser(security *runtimeapi.LinuxContainerSecurityContext, user *int64, image *runtimeapi.Image) {
	switch {
	case user != nil:
		security.RunAsUser = &runtimeapi.Int64Value{Value: *user}
	case image.GetUid() != nil:
		security.RunAsUser = &runtimeapi.Int64Value{Value: image.GetUid().GetValue()}
	case image.GetUsername() != "":
		security.RunAsUsername = image.GetUsername()
	default:
		security.RunAsUser = &runtimeapi.Int64Value{}
	}
}

// checkNonRoot refuses a container that must not run as root and would, or might.
func checkNonRoot(security *runtimeapi.LinuxContainerSecurityContext, pod *v1.Pod, container *v1.Container, nonRoot bool, asked *int64) error {
	if !nonRoot {
		return nil
	}
	of := fmt.Sprintf("(pod: \"%s_%s(%s)\", container: %s)", pod.Name, pod.Namespace, pod.UID, container.Name)
	switch {
	case asked != nil && *asked == 0:
		return fmt.Errorf("container's runAsUser breaks non-root policy %s", of)
	case asked != nil:
		return nil
	case security.RunAsUsername != "":
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root %s", security.RunAsUsername, of)
	case security.RunAsUser.GetValue() == 0:
		return fmt.Errorf("container has runAsNonRoot and image will run as root %s", of)
	}
	return nil
}

func capabilities(list []v1.Capability) (names []string) {
	for _, c := range list {
		names = append(names, strings.TrimPrefix(string(c), "CAP_"))
	}
	return names
}

func profile(asked *v1.SeccompProfile) *runtimeapi.SecurityProfile {
	switch {
	case asked == nil, asked.Type == v1.SeccompProfileTypeUnconfined:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
	case asked.Type == v1.SeccompProfileTypeLocalhost && asked.LocalhostProfile != nil:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: filepath.Join(seccompDir, *asked.LocalhostProfile)}
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
}

func appArmor(asked *v1.AppArmorProfile) *runtimeapi.SecurityProfile {
	switch {
	case asked == nil:
		return nil
	case asked.Type == v1.AppArmorProfileTypeUnconfined:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
	case asked.Type == v1.AppArmorProfileTypeLocalhost && asked.LocalhostProfile != nil:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: "localhost/" + *asked.LocalhostProfile}
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
}
