package function

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/statusd/statusd/runtime"
)

// honored are the fields that a function can honor because it sees them, and those that are for
// others: the scheduler, the caller of the runtime. A field that is not listed is refused, so that
// one that a later version of Kubernetes adds is not silently ignored.
var honored = []string{
	"spec.activeDeadlineSeconds", "spec.affinity", "spec.automountServiceAccountToken", "spec.containers", "spec.dnsPolicy",
	"spec.enableServiceLinks", "spec.initContainers", "spec.nodeName", "spec.nodeSelector", "spec.os", "spec.preemptionPolicy",
	"spec.priority", "spec.priorityClassName", "spec.readinessGates", "spec.restartPolicy", "spec.schedulerName",
	"spec.schedulingGates", "spec.serviceAccount", "spec.serviceAccountName", "spec.terminationGracePeriodSeconds",
	"spec.tolerations", "spec.topologySpreadConstraints",

	"spec.containers.args", "spec.containers.command", "spec.containers.env", "spec.containers.env.name",
	"spec.containers.env.value", "spec.containers.image", "spec.containers.imagePullPolicy", "spec.containers.name",
	"spec.containers.ports", "spec.containers.ports.containerPort", "spec.containers.ports.name", "spec.containers.ports.protocol",
	"spec.containers.resizePolicy", "spec.containers.resources", "spec.containers.resources.requests",
	"spec.containers.restartPolicy", "spec.containers.restartPolicyRules", "spec.containers.terminationMessagePath",
	"spec.containers.terminationMessagePolicy",
}

// Check implements [runtime.Runtime].
func (r *Runtime) Check(pod *v1.Pod) []runtime.Unsupported {
	var found []runtime.Unsupported
	refuse := func(at string) {
		found = append(found, runtime.Unsupported{Field: at, Reason: "runtime " + r.options.Name + " cannot honor it" + hints[at]})
	}
	for _, field := range fields(&pod.Spec) {
		if !r.honored["spec."+field] {
			refuse("spec." + field)
		}
	}
	each := func(list string, containers []v1.Container) {
		for i := range containers {
			at := fmt.Sprintf("spec.%s[%d]", list, i)
			r.checkContainer(&containers[i], at, refuse)
		}
	}
	each("initContainers", pod.Spec.InitContainers)
	each("containers", pod.Spec.Containers)
	return found
}

// hints are ways out.
var hints = map[string]string{
	"spec.volumes": "; without a token of the service account (automountServiceAccountToken: false) the API server adds none",
}

func (r *Runtime) checkContainer(c *v1.Container, at string, refuse func(string)) {
	const path = "spec.containers."
	for _, field := range fields(c) {
		switch {
		case usesExec(c, field):
			refuse(at + "." + field + ".exec")
		case !r.honored[path+field]:
			refuse(at + "." + field)
		case field == "env":
			for i := range c.Env {
				r.checkParts(&c.Env[i], path+"env.", fmt.Sprintf("%s.env[%d].", at, i), refuse)
			}
		case field == "ports":
			for i := range c.Ports {
				r.checkParts(&c.Ports[i], path+"ports.", fmt.Sprintf("%s.ports[%d].", at, i), refuse)
			}
		case field == "resources":
			r.checkParts(&c.Resources, path+"resources.", at+".resources.", refuse)
		}
	}
}

func (r *Runtime) checkParts(object any, path, at string, refuse func(string)) {
	for _, field := range fields(object) {
		if !r.honored[path+field] {
			refuse(at + field)
		}
	}
}

// usesExec reports whether the field of the container runs a command inside of it.
func usesExec(c *v1.Container, field string) bool {
	probe := func(p *v1.Probe) bool { return p != nil && p.Exec != nil }
	switch field {
	case "livenessProbe":
		return probe(c.LivenessProbe)
	case "readinessProbe":
		return probe(c.ReadinessProbe)
	case "startupProbe":
		return probe(c.StartupProbe)
	case "lifecycle":
		l := c.Lifecycle
		return l.PostStart != nil && l.PostStart.Exec != nil || l.PreStop != nil && l.PreStop.Exec != nil
	}
	return false
}

// fields are the names in the API of those fields of an object that say something, in order.
func fields(object any) []string {
	all, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return []string{fmt.Sprintf("(%v)", err)} // which nothing honors
	}
	maps.DeleteFunc(all, func(_ string, value any) bool {
		part, isObject := value.(map[string]any)
		return value == nil || isObject && len(part) == 0
	})
	return slices.Sorted(maps.Keys(all))
}
