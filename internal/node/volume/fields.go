package volume

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Fields has the values of the downward API, for env and files.
type Fields struct {
	Pod *v1.Pod
	// Container is the container whose resources a reference without a name means.
	Container *v1.Container
	// IPs are the addresses of the pod, HostIPs those of the machine; IPs if HostIPs is empty.
	IPs, HostIPs []string
	// Allocatable replaces limits that the container does not have.
	Allocatable v1.ResourceList
}

// Field is the value of a fieldRef in env.
func (f Fields) Field(path string) (string, error) {
	if name, key, ok := subscript(path); ok {
		switch name {
		case "metadata.labels":
			return f.Pod.Labels[key], nil
		case "metadata.annotations":
			return f.Pod.Annotations[key], nil
		}
	}
	get, known := podFields[path]
	if !known {
		return "", fmt.Errorf("field %q is not supported", path)
	}
	return get(f), nil
}

// FileField is the value of a fieldRef in a volume, where all labels and all annotations
// can be had too.
func (f Fields) FileField(path string) (string, error) {
	switch path {
	case "metadata.labels":
		return lines(f.Pod.Labels), nil
	case "metadata.annotations":
		return lines(f.Pod.Annotations), nil
	}
	return f.Field(path)
}

// lines writes a map as key="value" lines, in order.
func lines(values map[string]string) string {
	all := make([]string, 0, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		all = append(all, fmt.Sprintf("%s=%q", key, values[key]))
	}
	return strings.Join(all, "\n")
}

// podFields are the fields of a pod that can be referred to, beside labels and annotations.
var podFields = map[string]func(Fields) string{
	"metadata.name":           func(f Fields) string { return f.Pod.Name },
	"metadata.namespace":      func(f Fields) string { return f.Pod.Namespace },
	"metadata.uid":            func(f Fields) string { return string(f.Pod.UID) },
	"spec.nodeName":           func(f Fields) string { return f.Pod.Spec.NodeName },
	"spec.serviceAccountName": func(f Fields) string { return f.Pod.Spec.ServiceAccountName },
	"status.hostIP":           func(f Fields) string { return first(f.hostIPs()) },
	"status.podIP":            func(f Fields) string { return first(f.IPs) },
	"status.hostIPs":          func(f Fields) string { return strings.Join(f.hostIPs(), ",") },
	"status.podIPs":           func(f Fields) string { return strings.Join(f.IPs, ",") },
}

func (f Fields) hostIPs() []string {
	if len(f.HostIPs) > 0 {
		return f.HostIPs
	}
	return f.IPs
}

func first(ips []string) string {
	if len(ips) == 0 {
		return ""
	}
	return ips[0]
}

// subscript takes metadata.labels['key'] apart.
func subscript(path string) (name, key string, ok bool) {
	name, rest, found := strings.Cut(path, "['")
	key, closed := strings.CutSuffix(rest, "']")
	return name, key, found && closed
}

// Resource is a request or a limit of a container, in units of the divisor, rounded up.
func (f Fields) Resource(ref *v1.ResourceFieldSelector) (string, error) {
	kind, name, _ := strings.Cut(ref.Resource, ".")
	container, err := f.container(ref.ContainerName)
	if err != nil {
		return "", err
	}
	var quantity resource.Quantity
	switch kind {
	case "requests":
		quantity = container.Resources.Requests[v1.ResourceName(name)]
	case "limits":
		limit, limited := container.Resources.Limits[v1.ResourceName(name)]
		if !limited {
			limit = f.Allocatable[v1.ResourceName(name)]
		}
		quantity = limit
	default:
		return "", fmt.Errorf("resource %q is not supported", ref.Resource)
	}
	divisor := ref.Divisor
	if divisor.Sign() <= 0 {
		divisor = resource.MustParse("1")
	}
	if v1.ResourceName(name) == v1.ResourceCPU {
		return fmt.Sprint(ceilDiv(quantity.MilliValue(), divisor.MilliValue())), nil
	}
	return fmt.Sprint(ceilDiv(quantity.Value(), divisor.Value())), nil
}

func ceilDiv(a, b int64) int64 {
	quotient := a / b
	if a%b > 0 {
		quotient++
	}
	return quotient
}

func (f Fields) container(name string) (*v1.Container, error) {
	if name == "" && f.Container != nil {
		return f.Container, nil
	}
	for _, list := range [][]v1.Container{f.Pod.Spec.InitContainers, f.Pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i], nil
			}
		}
	}
	return nil, fmt.Errorf("there is no container %q in the pod", name)
}
