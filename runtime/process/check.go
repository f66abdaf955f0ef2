package process

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/statusd/statusd/internal/node/volume"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// Image is the only image: the machine itself.
const Image = "host"

// Check implements [runtime.Runtime]. The tables of check_test.go class every field of a pod's
// spec; a field that the API adds fails that test until Check handles it.
func (r *Runtime) Check(pod *v1.Pod) []runtime.Unsupported {
	c := &checker{root: r.root, views: r.views, noMemory: r.noMemory, objects: r.options.Objects != nil, noLimits: r.groups.problem()}
	if !r.options.AllowPodsWithoutIsolation && !podstatus.IsStatic(pod) {
		c.checkIsolation(field.NewPath("spec"), &pod.Spec)
	}
	c.checkPod(field.NewPath("spec"), &pod.Spec)
	return c.found
}

// checker collects what is not supported.
type checker struct {
	root     bool   // we may become any user
	views    bool   // containers can have views of their own
	noMemory string // why volumes cannot be in memory; empty if they can
	objects  bool   // there is an API server to read config maps and secrets from
	noLimits string // why limits cannot be enforced; empty if they can
	volumes  map[string]*v1.VolumeSource
	// podSecurity is what holds for containers that say nothing else.
	podSecurity *v1.PodSecurityContext
	container   string // whose fields are looked at; empty: those of the pod
	found       []runtime.Unsupported
}

// reject names a field if it asks for what we cannot do.
func (c *checker) reject(asked bool, path *field.Path, reason string) {
	if asked {
		c.found = append(c.found, runtime.Unsupported{Field: path.String(), Reason: reason, Container: c.container})
	}
}

// checkImage rejects every image but [Image].
func (c *checker) checkImage(path *field.Path, image string) {
	if image == Image {
		return
	}
	waiting := runtime.WaitingImagePull
	if !imageName.MatchString(image) {
		waiting = runtime.WaitingInvalidImageName
	}
	c.found = append(c.found, runtime.Unsupported{
		Field: path.String(), Container: c.container, Waiting: waiting,
		Reason: fmt.Sprintf("image %q cannot be run: containers are processes of this machine, so the image must be %q", image, Image),
	})
}

// imageName is what names of images look like: registry, path, tag and digest.
var imageName = regexp.MustCompile(`^([\w.-]+(:\d+)?/)?[a-z0-9._-]+(/[a-z0-9._-]+)*(:\w[\w.-]{0,127})?(@[a-z0-9]+:[0-9a-f]{32,})?$`)

const (
	noNamespaces = "a process shares the machine's namespaces"
	noHostname   = "a process has the host name of the machine"
	noEtc        = "nothing can be mounted here, so that a process uses the resolver and /etc/hosts of the machine"
	noDevices    = "devices are not allocated to processes"
	noObjects    = "there is no API server to read config maps and secrets from"
)

// checkIsolation rejects a pod that expects to be isolated from the machine: policies and
// people take a pod for isolated that does not ask for the machine's namespaces. A static
// pod is not asked: its manifest was written by someone who may run programs here anyway.
func (c *checker) checkIsolation(path *field.Path, spec *v1.PodSpec) {
	var missing []string
	for name, asked := range map[string]bool{"hostNetwork": spec.HostNetwork, "hostPID": spec.HostPID, "hostIPC": spec.HostIPC} {
		if !asked {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return
	}
	slices.Sort(missing)
	c.reject(true, path.Child(missing[0]), fmt.Sprintf("a pod is a process of the machine here, in its network, PID and IPC namespaces, and this pod does not ask for these namespaces: "+
		"%s must be true, or the configuration of this node must allow pods without isolation", strings.Join(missing, ", ")))
}

func (c *checker) checkPod(path *field.Path, spec *v1.PodSpec) {
	// The policies that name the cluster mean the resolver of the machine, as on a node without a DNS server of the cluster.
	c.reject(spec.DNSPolicy == v1.DNSNone && !c.views, path.Child("dnsPolicy"), noEtc)
	c.reject(spec.DNSConfig != nil && !c.views, path.Child("dnsConfig"), noEtc)
	c.reject(spec.Hostname != "" && !c.views, path.Child("hostname"), noHostname)
	c.reject(isTrue(spec.SetHostnameAsFQDN), path.Child("setHostnameAsFQDN"), noHostname)
	c.reject(spec.HostnameOverride != nil, path.Child("hostnameOverride"), noHostname)
	c.reject(len(spec.HostAliases) > 0 && !c.views, path.Child("hostAliases"), noEtc)
	c.reject(spec.RuntimeClassName != nil, path.Child("runtimeClassName"), "there is one runtime only")
	c.reject(spec.OS != nil && spec.OS.Name != v1.Linux, path.Child("os", "name"), "this machine runs linux")
	c.reject(spec.HostUsers != nil && !*spec.HostUsers, path.Child("hostUsers"), noNamespaces)
	c.reject(len(spec.ResourceClaims) > 0, path.Child("resourceClaims"), noDevices)
	if spec.Resources != nil {
		c.checkResources(path.Child("resources"), spec.Resources)
	}
	c.podSecurity = spec.SecurityContext
	c.checkPodSecurity(path.Child("securityContext"), spec.SecurityContext)
	c.volumes = map[string]*v1.VolumeSource{}
	for i := range spec.Volumes {
		c.volumes[spec.Volumes[i].Name] = &spec.Volumes[i].VolumeSource
		c.checkVolume(path.Child("volumes").Index(i), &spec.Volumes[i])
	}
	for i := range spec.InitContainers {
		c.checkContainer(path.Child("initContainers").Index(i), &spec.InitContainers[i])
	}
	for i := range spec.Containers {
		c.checkContainer(path.Child("containers").Index(i), &spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		c.checkContainer(path.Child("ephemeralContainers").Index(i), (*v1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
}

func (c *checker) checkContainer(path *field.Path, container *v1.Container) {
	c.container = container.Name
	defer func() { c.container = "" }()
	c.checkImage(path.Child("image"), container.Image)
	c.reject(len(container.Command) == 0, path.Child("command"), fmt.Sprintf("image %q has no entry point: set command", Image))
	c.reject(len(container.EnvFrom) > 0 && !c.objects, path.Child("envFrom"), noObjects)
	c.checkMessagePath(path.Child("terminationMessagePath"), container)
	c.reject(len(container.VolumeDevices) > 0, path.Child("volumeDevices"), noDevices)
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
	c.checkSecurity(path.Child("securityContext"), c.podSecurity, container.SecurityContext)
}

// checkPort lets ports through that say what the process does anyway.
func (c *checker) checkPort(path *field.Path, port v1.ContainerPort) {
	c.reject(port.HostPort != 0 && port.HostPort != port.ContainerPort, path.Child("hostPort"),
		"a process listens on the machine's own ports: hostPort must be equal to containerPort, or left out")
	c.reject(port.HostIP != "", path.Child("hostIP"), "the process itself decides on which address it listens")
}

func (c *checker) checkVariable(path *field.Path, variable v1.EnvVar) {
	c.reject(strings.HasPrefix(variable.Name, VariablePrefix), path.Child("name"),
		"names that start with "+VariablePrefix+" are set by the runtime")
	from := variable.ValueFrom
	if from == nil {
		return
	}
	path = path.Child("valueFrom")
	c.reject(from.ConfigMapKeyRef != nil && !c.objects, path.Child("configMapKeyRef"), noObjects)
	c.reject(from.SecretKeyRef != nil && !c.objects, path.Child("secretKeyRef"), noObjects)
	c.reject(from.FileKeyRef != nil, path.Child("fileKeyRef"), "environment files are not supported")
	if from.FieldRef != nil {
		_, err := volume.Fields{Pod: &v1.Pod{}}.Field(from.FieldRef.FieldPath)
		c.reject(err != nil, path.Child("fieldRef", "fieldPath"), "this field is not known to the runtime")
	}
	if ref := from.ResourceFieldRef; ref != nil {
		c.checkResourceRef(path.Child("resourceFieldRef", "resource"), ref)
	}
}

func (c *checker) checkResourceRef(path *field.Path, ref *v1.ResourceFieldSelector) {
	kind, name, _ := strings.Cut(ref.Resource, ".")
	c.reject((kind != "requests" && kind != "limits") || !isKnownResource(name), path, "this resource is not known to the runtime")
}

func isKnownResource(name string) bool {
	switch v1.ResourceName(name) {
	case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage:
		return true
	}
	return false
}

// checkMessagePath lets a path through at which the termination log can be mounted.
func (c *checker) checkMessagePath(path *field.Path, container *v1.Container) {
	if isDefaultPath(container.TerminationMessagePath) {
		return
	}
	c.reject(!c.views, path, "nothing can be mounted there; leave it out, and write the message to $"+TerminationLogVariable)
	c.reject(!strings.HasPrefix(container.TerminationMessagePath, "/"), path, "must be an absolute path")
	if mount := mountOf(container, messagePath(container)); mount != nil {
		source := c.volumes[mount.Name]
		c.reject(mount.ReadOnly || source == nil || volume.HasContents(source), path, "is in a volume that the container cannot write to")
	}
}

// isDefaultPath reports whether a termination message goes where every pod's does that says
// nothing about it.
func isDefaultPath(path string) bool { return path == "" || path == v1.TerminationMessagePathDefault }

// checkResources lets requests through, which are the scheduler's, and limits that can be
// enforced.
func (c *checker) checkResources(path *field.Path, resources *v1.ResourceRequirements) {
	c.reject(len(resources.Limits) > 0 && c.noLimits != "", path.Child("limits"), c.noLimits)
	c.reject(len(resources.Claims) > 0, path.Child("claims"), noDevices)
	for _, name := range sortedNames(resources.Limits) {
		switch v1.ResourceName(name) {
		case v1.ResourceCPU, v1.ResourceMemory:
		case v1.ResourceEphemeralStorage:
			c.reject(true, path.Child("limits").Key(name), "the disk that a process uses is not limited; use requests, which count for scheduling")
		default:
			c.reject(true, path.Child("limits").Key(name), noDevices)
		}
	}
	for _, name := range sortedNames(resources.Requests) {
		_, limited := resources.Limits[v1.ResourceName(name)]
		c.reject(!isKnownResource(name) && !limited, path.Child("requests").Key(name), noDevices)
	}
}

func sortedNames(list v1.ResourceList) []string {
	var names []string
	for name := range list {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return names
}

// checkLifecycle leaves the handlers, which the caller runs, and looks at the signal.
func (c *checker) checkLifecycle(path *field.Path, lifecycle *v1.Lifecycle) {
	if lifecycle == nil || lifecycle.StopSignal == nil {
		return
	}
	c.reject(signalNumber(*lifecycle.StopSignal) == 0, path.Child("stopSignal"), fmt.Sprintf("this machine has no signal %s", *lifecycle.StopSignal))
}

func isTrue(b *bool) bool { return b != nil && *b }
