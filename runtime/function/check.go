package function

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/statusd/statusd/runtime"
)

// honored are the fields that a function can honor because it sees them, and the fields for other components:
// the scheduler, the prober, the caller of the runtime. A name includes all fields below it. Fields that are
// not listed are refused, so that a field added by a later version of Kubernetes is not silently ignored.
//
// Fields that restrict the process of an image are listed: a function is code of the program, and
// runs no image. Fields that demand something of the machine (devices, privileges, volumes, its ports) are not.
var honored = []string{
	"activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "dnsPolicy", "enableServiceLinks", "hostname", "imagePullSecrets",
	"nodeName", "nodeSelector", "os", "preemptionPolicy", "priority", "priorityClassName", "readinessGates", "restartPolicy", "schedulerName",
	"schedulingGates", "serviceAccount", "serviceAccountName", "subdomain", "terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints",
	"volumes.name",

	"securityContext.appArmorProfile", "securityContext.fsGroup", "securityContext.fsGroupChangePolicy", "securityContext.runAsGroup",
	"securityContext.runAsNonRoot", "securityContext.runAsUser", "securityContext.seccompProfile", "securityContext.supplementalGroups",
	"securityContext.supplementalGroupsPolicy",

	"containers.args", "containers.command", "containers.env", "containers.envFrom", "containers.image", "containers.imagePullPolicy",
	"containers.livenessProbe", "containers.name", "containers.ports.containerPort", "containers.ports.name", "containers.ports.protocol",
	"containers.readinessProbe", "containers.resizePolicy", "containers.restartPolicy", "containers.restartPolicyRules", "containers.startupProbe",
	"containers.targetContainerName", "containers.terminationMessagePath", "containers.terminationMessagePolicy", "containers.volumeMounts", "containers.workingDir",

	"containers.lifecycle.postStart.httpGet", "containers.lifecycle.postStart.sleep", "containers.lifecycle.preStop.httpGet", "containers.lifecycle.preStop.sleep",

	"containers.resources.limits.cpu", "containers.resources.limits.ephemeral-storage", "containers.resources.limits.memory",
	"containers.resources.requests.cpu", "containers.resources.requests.ephemeral-storage", "containers.resources.requests.memory",

	"containers.securityContext.allowPrivilegeEscalation", "containers.securityContext.appArmorProfile", "containers.securityContext.capabilities.drop",
	"containers.securityContext.readOnlyRootFilesystem", "containers.securityContext.runAsGroup", "containers.securityContext.runAsNonRoot",
	"containers.securityContext.runAsUser", "containers.securityContext.seccompProfile",
}

// impossible are fields that no function can honor: there is nothing that a command could run in.
var impossible = map[string]bool{
	"spec.containers.livenessProbe.exec": true, "spec.containers.readinessProbe.exec": true, "spec.containers.startupProbe.exec": true,
	"spec.containers.lifecycle.postStart.exec": true, "spec.containers.lifecycle.preStop.exec": true,
}

// Check implements [runtime.Runtime].
func (r *Runtime) Check(pod *v1.Pod) []runtime.Unsupported {
	fields, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(&pod.Spec)
	if err != nil {
		return []runtime.Unsupported{{Field: "spec", Reason: err.Error()}}
	}
	if volumes, ok := fields["volumes"].([]any); ok {
		for i := range volumes {
			if isInjectedToken(&pod.Spec.Volumes[i]) {
				volumes[i] = nil
			}
		}
	}
	c := &checker{runtime: r}
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		containers, _ := fields[list].([]any)
		delete(fields, list)
		for i, container := range containers {
			part := container.(map[string]any)
			c.container, _ = part["name"].(string)
			c.check("spec.containers", fmt.Sprintf("spec.%s[%d]", list, i), part)
		}
	}
	c.container = ""
	c.check("spec", "spec", fields)
	return c.found
}

// checker collects what is not honored.
type checker struct {
	runtime   *Runtime
	container string // whose fields are looked at; empty: those of the pod
	found     []runtime.Unsupported
}

// check looks at a value: the name is that of Honors, at says where it is in this pod.
func (c *checker) check(name, at string, value any) {
	switch {
	case saysNothing(name, value):
		return
	case impossible[name]:
		c.refuse(at, "runs no commands inside a container")
		return
	case c.runtime.honors(name) && !below(impossible, name):
		return
	}
	switch value := value.(type) {
	case map[string]any:
		if below(c.runtime.honored, name) || below(impossible, name) {
			for _, key := range slices.Sorted(maps.Keys(value)) {
				c.check(name+"."+key, at+"."+key, value[key])
			}
			return
		}
	case []any:
		if below(c.runtime.honored, name) {
			for i, one := range value {
				c.check(name, fmt.Sprintf("%s[%d]", at, i), one)
			}
			return
		}
	}
	c.refuse(at, "cannot honor it")
}

func (c *checker) refuse(at, why string) {
	c.found = append(c.found, runtime.Unsupported{Field: at, Reason: "runtime " + c.runtime.options.Name + " " + why, Container: c.container})
}

// honors reports whether a field or one above it is honored.
func (r *Runtime) honors(name string) bool {
	for {
		if r.honored[name] {
			return true
		}
		dot := strings.LastIndexByte(name, '.')
		if dot < 0 {
			return false
		}
		name = name[:dot]
	}
}

// below reports whether a name is of something below the field.
func below(names map[string]bool, field string) bool {
	for name := range names {
		if strings.HasPrefix(name, field+".") {
			return true
		}
	}
	return false
}

// saysNothing reports whether a pod without the field has this value.
func saysNothing(name string, value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	case bool:
		return !value && name == "spec.containers.securityContext.privileged"
	}
	return false
}

// isInjectedToken reports whether a volume is the service account token that the API server adds to each pod.
// A function that talks to the API server has credentials of its own, so no pod waits for it.
func isInjectedToken(v *v1.Volume) bool {
	if !strings.HasPrefix(v.Name, "kube-api-access-") || v.Projected == nil {
		return false
	}
	return slices.ContainsFunc(v.Projected.Sources, func(p v1.VolumeProjection) bool { return p.ServiceAccountToken != nil })
}
