package process

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// variables are an environment in the making: in order, the last value of a name wins.
type variables struct {
	names  []string
	values map[string]string
}

func (v *variables) set(name, value string) {
	if v.values == nil {
		v.values = map[string]string{}
	}
	if _, known := v.values[name]; !known {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

func (v *variables) lookup(name string) (string, bool) {
	value, ok := v.values[name]
	return value, ok
}

func (v *variables) list() []string {
	list := make([]string, len(v.names))
	for i, name := range v.names {
		list[i] = name + "=" + v.values[name]
	}
	return list
}

// expand replaces $(NAME) by its value. $$ stands for $, so that $$(NAME) stays $(NAME);
// what refers to nothing stays as it is.
func expand(text string, lookup func(string) (string, bool)) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		text = after
		switch {
		case strings.HasPrefix(text, "$"):
			out.WriteByte('$')
			text = text[1:]
		case strings.HasPrefix(text, "("):
			name, rest, closed := strings.Cut(text[1:], ")")
			value, known := lookup(name)
			if !closed || !known {
				out.WriteByte('$') // and the rest is ordinary text
				continue
			}
			out.WriteString(value)
			text = rest
		default:
			out.WriteByte('$')
		}
	}
}

// fieldSource answers valueFrom.
type fieldSource struct {
	pod       *v1.Pod
	container *v1.Container
	nodeIPs   []string
}

// value is for sources that Check has let through.
func (s fieldSource) value(from *v1.EnvVarSource) (string, error) {
	switch {
	case from.FieldRef != nil:
		return s.field(from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		return s.resource(from.ResourceFieldRef)
	default:
		return "", fmt.Errorf("valueFrom is not supported")
	}
}

func (s fieldSource) field(path string) (string, error) {
	if name, key, ok := subscript(path); ok {
		switch name {
		case "metadata.labels":
			return s.pod.Labels[key], nil
		case "metadata.annotations":
			return s.pod.Annotations[key], nil
		}
	}
	get, known := podFields[path]
	if !known {
		return "", fmt.Errorf("field %q is not supported", path)
	}
	return get(s), nil
}

// podFields are the fields of a pod that env can refer to, beside labels and annotations.
var podFields = map[string]func(fieldSource) string{
	"metadata.name":           func(s fieldSource) string { return s.pod.Name },
	"metadata.namespace":      func(s fieldSource) string { return s.pod.Namespace },
	"metadata.uid":            func(s fieldSource) string { return string(s.pod.UID) },
	"spec.nodeName":           func(s fieldSource) string { return s.pod.Spec.NodeName },
	"spec.serviceAccountName": func(s fieldSource) string { return s.pod.Spec.ServiceAccountName },
	"status.hostIP":           fieldSource.firstIP,
	"status.podIP":            fieldSource.firstIP,
	"status.hostIPs":          func(s fieldSource) string { return strings.Join(s.nodeIPs, ",") },
	"status.podIPs":           func(s fieldSource) string { return strings.Join(s.nodeIPs, ",") },
}

func (s fieldSource) firstIP() string {
	if len(s.nodeIPs) == 0 {
		return ""
	}
	return s.nodeIPs[0]
}

// subscript takes metadata.labels['key'] apart.
func subscript(path string) (name, key string, ok bool) {
	name, rest, found := strings.Cut(path, "['")
	key, closed := strings.CutSuffix(rest, "']")
	return name, key, found && closed
}

// resource is a request, in units of the divisor, rounded up.
func (s fieldSource) resource(ref *v1.ResourceFieldSelector) (string, error) {
	name, isRequest := strings.CutPrefix(ref.Resource, "requests.")
	if !isRequest {
		return "", fmt.Errorf("resource %q is not supported", ref.Resource)
	}
	container, err := s.containerNamed(cmp.Or(ref.ContainerName, s.container.Name))
	if err != nil {
		return "", err
	}
	quantity := container.Resources.Requests[v1.ResourceName(name)]
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if v1.ResourceName(name) == v1.ResourceCPU {
		return fmt.Sprint(ceilDiv(quantity.MilliValue(), divisor.MilliValue())), nil
	}
	return fmt.Sprint(ceilDiv(quantity.Value(), divisor.Value())), nil
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

func (s fieldSource) containerNamed(name string) (*v1.Container, error) {
	for _, c := range slices.Concat(s.pod.Spec.InitContainers, s.pod.Spec.Containers) {
		if c.Name == name {
			return &c, nil
		}
	}
	return nil, fmt.Errorf("there is no container %q in the pod", name)
}
