package process

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/statusd/statusd/runtime"
)

// Image is the only image: the machine itself.
const Image = "host"

// Check implements [runtime.Runtime]. The tables of check_test.go class every field of
// a pod's spec; a field that the API adds fails that test until somebody has decided.
func (r *Runtime) Check(pod *v1.Pod) []runtime.Unsupported {
	c := &checker{root: r.root}
	c.checkPod(field.NewPath("spec"), &pod.Spec)
	return c.found
}

// checker collects what is not supported.
type checker struct {
	root  bool // we may become any user
	found []runtime.Unsupported
}

// reject names a field if it asks for what we cannot do.
func (c *checker) reject(asked bool, path *field.Path, reason string) {
	if asked {
		c.found = append(c.found, runtime.Unsupported{Field: path.String(), Reason: reason})
	}
}

const (
	noNamespaces = "a process shares the machine's namespaces"
	noHostname   = "a process has the host name of the machine"
	noDNS        = "a process uses the resolver of the machine; use dnsPolicy Default or ClusterFirst, which both mean that here"
	noDevices    = "devices are not allocated to processes"
)

func (c *checker) checkPod(path *field.Path, spec *v1.PodSpec) {
	c.reject(len(spec.EphemeralContainers) > 0, path.Child("ephemeralContainers"), "ephemeral containers are not supported")
	c.reject(spec.DNSPolicy == v1.DNSNone || spec.DNSPolicy == v1.DNSClusterFirstWithHostNet, path.Child("dnsPolicy"), noDNS)
	c.reject(spec.DNSConfig != nil, path.Child("dnsConfig"), noDNS)
	c.reject(spec.Hostname != "", path.Child("hostname"), noHostname)
	c.reject(spec.Subdomain != "", path.Child("subdomain"), noHostname)
	c.reject(isTrue(spec.SetHostnameAsFQDN), path.Child("setHostnameAsFQDN"), noHostname)
	c.reject(spec.HostnameOverride != nil, path.Child("hostnameOverride"), noHostname)
	c.reject(len(spec.HostAliases) > 0, path.Child("hostAliases"), "a process uses /etc/hosts of the machine")
	c.reject(spec.RuntimeClassName != nil, path.Child("runtimeClassName"), "there is one runtime only")
	c.reject(spec.OS != nil && spec.OS.Name != v1.Linux, path.Child("os", "name"), "this machine runs linux")
	c.reject(spec.HostUsers != nil && !*spec.HostUsers, path.Child("hostUsers"), noNamespaces)
	c.reject(len(spec.ResourceClaims) > 0, path.Child("resourceClaims"), noDevices)
	if spec.Resources != nil {
		c.checkResources(path.Child("resources"), spec.Resources)
	}
	c.checkPodSecurity(path.Child("securityContext"), spec.SecurityContext)
	for i, volume := range spec.Volumes {
		c.checkVolume(path.Child("volumes").Index(i), &volume)
	}
	for i := range spec.InitContainers {
		c.checkContainer(path.Child("initContainers").Index(i), &spec.InitContainers[i])
	}
	for i := range spec.Containers {
		c.checkContainer(path.Child("containers").Index(i), &spec.Containers[i])
	}
}

func (c *checker) checkContainer(path *field.Path, container *v1.Container) {
	c.reject(container.Image != Image, path.Child("image"),
		fmt.Sprintf("image %q cannot be run: containers are processes of this machine, so the image must be %q", container.Image, Image))
	c.reject(len(container.Command) == 0, path.Child("command"), fmt.Sprintf("image %q has no entry point: say what to run", Image))
	c.reject(len(container.EnvFrom) > 0, path.Child("envFrom"), "config maps and secrets are not supported")
	c.reject(len(container.VolumeDevices) > 0, path.Child("volumeDevices"), noDevices)
	c.reject(container.Stdin, path.Child("stdin"), "the input of a process is empty")
	c.reject(container.StdinOnce, path.Child("stdinOnce"), "the input of a process is empty")
	c.reject(container.TTY, path.Child("tty"), "a process has no terminal")
	c.reject(container.WorkingDir != "" && !strings.HasPrefix(container.WorkingDir, "/"), path.Child("workingDir"), "must be an absolute path")
	for i, port := range container.Ports {
		c.checkPort(path.Child("ports").Index(i), port)
	}
	for i, variable := range container.Env {
		c.checkVariable(path.Child("env").Index(i), variable)
	}
	c.checkResources(path.Child("resources"), &container.Resources)
	c.checkMounts(path.Child("volumeMounts"), container.VolumeMounts)
	c.checkLifecycle(path.Child("lifecycle"), container.Lifecycle)
	c.checkSecurity(path.Child("securityContext"), container.SecurityContext)
}

// checkPort lets ports through that say what the process does anyway.
func (c *checker) checkPort(path *field.Path, port v1.ContainerPort) {
	c.reject(port.HostPort != 0 && port.HostPort != port.ContainerPort, path.Child("hostPort"),
		"a process listens on the machine's own ports: hostPort must be equal to containerPort, or left out")
	c.reject(port.HostIP != "", path.Child("hostIP"), "the process itself decides on which address it listens")
}

func (c *checker) checkVariable(path *field.Path, variable v1.EnvVar) {
	c.reject(strings.HasPrefix(variable.Name, runtime.VariablePrefix), path.Child("name"),
		"names that start with "+runtime.VariablePrefix+" are set by the runtime")
	from := variable.ValueFrom
	if from == nil {
		return
	}
	path = path.Child("valueFrom")
	c.reject(from.ConfigMapKeyRef != nil, path.Child("configMapKeyRef"), "config maps are not supported")
	c.reject(from.SecretKeyRef != nil, path.Child("secretKeyRef"), "secrets are not supported")
	c.reject(from.FileKeyRef != nil, path.Child("fileKeyRef"), "environment files are not supported")
	if from.FieldRef != nil {
		_, err := fieldSource{pod: &v1.Pod{}}.field(from.FieldRef.FieldPath)
		c.reject(err != nil, path.Child("fieldRef", "fieldPath"), "this field is not known to the runtime")
	}
	if ref := from.ResourceFieldRef; ref != nil {
		c.reject(!strings.HasPrefix(ref.Resource, "requests."), path.Child("resourceFieldRef", "resource"),
			"limits are not enforced, so there are none to tell; requests are supported")
	}
}

// checkResources lets requests through, which are the scheduler's, and nothing that
// would have to be enforced.
func (c *checker) checkResources(path *field.Path, resources *v1.ResourceRequirements) {
	c.reject(len(resources.Limits) > 0, path.Child("limits"), "limits are not enforced on processes; use requests, which count for scheduling")
	c.reject(len(resources.Claims) > 0, path.Child("claims"), noDevices)
	var names []string
	for name := range resources.Requests {
		names = append(names, string(name))
	}
	slices.Sort(names)
	for _, name := range names {
		switch v1.ResourceName(name) {
		case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage:
		default:
			c.reject(true, path.Child("requests").Key(name), noDevices)
		}
	}
}

// checkLifecycle leaves the handlers, which the caller runs, and looks at the signal.
func (c *checker) checkLifecycle(path *field.Path, lifecycle *v1.Lifecycle) {
	if lifecycle == nil || lifecycle.StopSignal == nil {
		return
	}
	c.reject(signalNumber(*lifecycle.StopSignal) == 0, path.Child("stopSignal"), fmt.Sprintf("this machine has no signal %s", *lifecycle.StopSignal))
}

func isTrue(b *bool) bool { return b != nil && *b }
