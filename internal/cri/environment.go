package cri

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/node/volume"
	"github.com/statusd/statusd/runtime"
)

// environment is what a container gets: services first, then what its spec takes from objects and defines.
func (r *Runtime) environment(ctx context.Context, p *pod, manifest *v1.Pod, spec *v1.Container) ([]v1.EnvVar, error) {
	fields := r.fields(p, manifest, spec)
	resolver := runtime.Environment{IPs: fields.IPs, HostIPs: fields.HostIPs, Allocatable: fields.Allocatable}
	if r.options.Objects != nil {
		resolver.Objects = r.options.Objects
	}
	resolver.Skipped = func(kind, name string, keys []string) {
		r.options.Event(manifest, spec.Name, v1.EventTypeWarning, runtime.EventInvalidVariables, fmt.Sprintf(
			"Keys [%s] from the EnvFrom %s %s/%s were skipped since they are considered invalid environment variable names.",
			strings.Join(keys, ", "), kind, manifest.Namespace, name))
	}
	services, err := r.serviceVariables(ctx, manifest)
	if err != nil {
		return nil, err
	}
	// What the spec refers to is resolved with the services; they come first, and the spec overrides them.
	return resolver.Resolve(ctx, manifest, spec, services...)
}

func (r *Runtime) fields(p *pod, manifest *v1.Pod, spec *v1.Container) volume.Fields {
	r.mu.Lock()
	ips := r.addressesOf(p)
	r.mu.Unlock()
	return volume.Fields{Pod: manifest, Container: spec, IPs: ips, HostIPs: r.options.Addresses(), Allocatable: r.options.Allocatable()}
}

// serviceVariables name the service of the API server, and the services of the pod's namespace if the pod enables service links.
func (r *Runtime) serviceVariables(ctx context.Context, pod *v1.Pod) ([]v1.EnvVar, error) {
	if r.options.Client == nil {
		return nil, nil
	}
	var all []v1.EnvVar
	// Any recent state will do, as with a kubelet's informer: the newest one would make each start wait until the API server's cache has it.
	const recent = "0"
	api, err := r.options.Client.CoreV1().Services(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=kubernetes", ResourceVersion: recent})
	if err != nil {
		return nil, fmt.Errorf("services have not yet been read at least once, cannot construct envvars: %w", err)
	}
	if links := pod.Spec.EnableServiceLinks; links == nil || *links {
		own, err := r.options.Client.CoreV1().Services(pod.Namespace).List(ctx, metav1.ListOptions{ResourceVersion: recent})
		if err != nil {
			return nil, fmt.Errorf("services have not yet been read at least once, cannot construct envvars: %w", err)
		}
		// The namespace's own service of the name comes last, so that it counts, as with a kubelet.
		api.Items = append(api.Items, own.Items...)
	}
	for i := range api.Items {
		all = append(all, variablesOf(&api.Items[i])...)
	}
	return all, nil
}

// variablesOf are those of one service, in the form that Docker once gave to links.
func variablesOf(service *v1.Service) (all []v1.EnvVar) {
	ip := service.Spec.ClusterIP
	if ip == "" || ip == v1.ClusterIPNone || len(service.Spec.Ports) == 0 {
		return nil
	}
	set := func(name, value string) { all = append(all, v1.EnvVar{Name: name, Value: value}) }
	prefix := variableName(service.Name)
	set(prefix+"_SERVICE_HOST", ip)
	set(prefix+"_SERVICE_PORT", strconv.Itoa(int(service.Spec.Ports[0].Port)))
	for _, port := range service.Spec.Ports {
		if port.Name != "" {
			set(prefix+"_SERVICE_PORT_"+variableName(port.Name), strconv.Itoa(int(port.Port)))
		}
	}
	for i, port := range service.Spec.Ports {
		protocol := string(port.Protocol)
		if protocol == "" {
			protocol = string(v1.ProtocolTCP)
		}
		number := strconv.Itoa(int(port.Port))
		url := strings.ToLower(protocol) + "://" + net.JoinHostPort(ip, number)
		if i == 0 {
			set(prefix+"_PORT", url)
		}
		each := prefix + "_PORT_" + number + "_" + strings.ToUpper(protocol)
		set(each, url)
		set(each+"_PROTO", strings.ToLower(protocol))
		set(each+"_PORT", number)
		set(each+"_ADDR", ip)
	}
	return all
}

func variableName(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }
