package cri

import (
	"fmt"
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/runtime"
)

// kinds are the volumes that this runtime makes.
const kinds = "emptyDir hostPath configMap secret downwardAPI projected"

// Check implements [runtime.Runtime].
func (r *Runtime) Check(pod *v1.Pod) (all []runtime.Unsupported) {
	spec := field.NewPath("spec")
	refuse := func(path *field.Path, container, reason string) {
		all = append(all, runtime.Unsupported{Field: path.String(), Reason: reason, Container: container})
	}
	if len(pod.Spec.ResourceClaims) > 0 {
		refuse(spec.Child("resourceClaims"), "", "this node has no devices for pods")
	}
	for i := range pod.Spec.Volumes {
		path := spec.Child("volumes").Index(i)
		if kind := kindOf(&pod.Spec.Volumes[i].VolumeSource); !strings.Contains(" "+kinds+" ", " "+kind+" ") {
			refuse(path.Child(kind), "", "this kind of volume is not supported; there are "+strings.ReplaceAll(kinds, " ", ", "))
		}
		if dir := pod.Spec.Volumes[i].EmptyDir; dir != nil && dir.Medium != v1.StorageMediumDefault && dir.Medium != v1.StorageMediumMemory {
			refuse(path.Child("emptyDir", "medium"), "", fmt.Sprintf("medium %q is not supported", dir.Medium))
		}
	}
	for name, list := range map[string][]v1.Container{"containers": pod.Spec.Containers, "initContainers": pod.Spec.InitContainers} {
		for i := range list {
			r.checkContainer(spec.Child(name).Index(i), &list[i], refuse)
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		r.checkContainer(spec.Child("ephemeralContainers").Index(i), (*v1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon), refuse)
	}
	return all
}

func (r *Runtime) checkContainer(path *field.Path, c *v1.Container, refuse func(path *field.Path, container, reason string)) {
	if len(c.VolumeDevices) > 0 {
		refuse(path.Child("volumeDevices"), c.Name, "this node has no block devices for pods")
	}
	if len(c.Resources.Claims) > 0 {
		refuse(path.Child("resources", "claims"), c.Name, "this node has no devices for pods")
	}
	for i, m := range c.VolumeMounts {
		if m.RecursiveReadOnly != nil && *m.RecursiveReadOnly == v1.RecursiveReadOnlyEnabled && r.cri != nil && !r.cri.features("").GetRecursiveReadOnlyMounts() {
			refuse(path.Child("volumeMounts").Index(i).Child("recursiveReadOnly"), c.Name, "this container runtime has no mounts that are read-only with all that is mounted in them")
		}
	}
	for i, v := range c.Env {
		if v.ValueFrom != nil && v.ValueFrom.FileKeyRef != nil {
			refuse(path.Child("env").Index(i).Child("valueFrom", "fileKeyRef"), c.Name, "environment files are not supported")
		}
	}
}

// Checker checks pods without a container runtime. Its other methods must not be called.
type Checker struct{ runtime.Runtime }

// Check implements [runtime.Runtime].
func (Checker) Check(pod *v1.Pod) []runtime.Unsupported {
	return (&Runtime{}).Check(pod)
}

// kindOf is the name of the one kind of volume that is set.
func kindOf(source *v1.VolumeSource) string {
	value := reflect.ValueOf(*source)
	for i := range value.NumField() {
		if !value.Field(i).IsNil() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return "emptyDir" // the default of the API
}

// safeSysctls are the sysctls that a pod may set without harm to other pods, as in the kubelet.
var safeSysctls = map[string]bool{
	"kernel.shm_rmid_forced": true, "net.ipv4.ip_local_port_range": true, "net.ipv4.tcp_syncookies": true, "net.ipv4.ping_group_range": true,
	"net.ipv4.ip_unprivileged_port_start": true, "net.ipv4.ip_local_reserved_ports": true, "net.ipv4.tcp_keepalive_time": true,
	"net.ipv4.tcp_fin_timeout": true, "net.ipv4.tcp_keepalive_intvl": true, "net.ipv4.tcp_keepalive_probes": true,
	"net.ipv4.tcp_rmem": true, "net.ipv4.tcp_wmem": true,
}

// Admit implements [runtime.Gate]: a pod that requests a forbidden feature is rejected, as by the kubelet.
func (r *Runtime) Admit(pod *v1.Pod) (reason, message string) {
	if pod.Spec.OS != nil && pod.Spec.OS.Name != v1.Linux {
		return "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
	}
	if pod.Spec.SecurityContext == nil {
		return "", ""
	}
	if groupsPolicy(pod.Spec.SecurityContext) == runtimeapi.SupplementalGroupsPolicy_Strict && r.cri != nil && !r.cri.release.Load().strictGroups {
		// An older container runtime would ignore the policy and add the groups of the image.
		return "SupplementalGroupsPolicyNotSupported", "SupplementalGroupsPolicy=Strict is not supported in this node"
	}
	for _, s := range pod.Spec.SecurityContext.Sysctls {
		name := dotted(s.Name)
		switch {
		case pod.Spec.HostNetwork && strings.HasPrefix(name, "net."):
			return "SysctlForbidden", fmt.Sprintf("forbidden sysctl: %q not allowed with host net enabled", s.Name)
		case pod.Spec.HostIPC && strings.HasPrefix(name, "kernel.shm"):
			return "SysctlForbidden", fmt.Sprintf("forbidden sysctl: %q not allowed with host ipc enabled", s.Name)
		case !safeSysctls[name]:
			return "SysctlForbidden", fmt.Sprintf("forbidden sysctl: %q not allowlisted", s.Name)
		}
	}
	return "", ""
}
