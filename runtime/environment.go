package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/statusd/statusd/internal/environ"
	"github.com/statusd/statusd/internal/node/volume"
)

// EnvironmentObjects reads the objects that environments refer to. An error that wraps the API's NotFound means that
// the object does not exist, and is ignored for an optional reference.
type EnvironmentObjects interface {
	ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)
}

// Environment resolves the environment of containers as the kubelet does: envFrom, valueFrom, the downward API and
// references $(NAME).
type Environment struct {
	// Objects reads config maps and secrets. Without it, references to them are errors.
	Objects EnvironmentObjects
	// IPs are the addresses of the pod, HostIPs the addresses of the node, which default to IPs.
	IPs, HostIPs []string
	// Allocatable has the values for limits that a container does not have.
	Allocatable v1.ResourceList
	// ReservedPrefix is a prefix of names that config maps and secrets cannot set; empty: all names
	// can be set.
	ReservedPrefix string
	// Skipped, if set, is called for keys of a config map or secret that are not valid names of
	// variables.
	Skipped func(kind, name string, keys []string)
}

// Resolve returns the variables of a container in their order, each once and with its value. Base has the variables set
// before them, to which they may refer. An error names the missing object or key: the container cannot be started, and
// waits with [WaitingConfigError].
func (e Environment) Resolve(ctx context.Context, pod *v1.Pod, container *v1.Container, base ...v1.EnvVar) ([]v1.EnvVar, error) {
	env := &environ.Variables{}
	for _, v := range base {
		env.Set(v.Name, v.Value)
	}
	for i := range container.EnvFrom {
		if err := e.importAll(ctx, env, pod, &container.EnvFrom[i]); err != nil {
			return nil, err
		}
	}
	for _, v := range container.Env {
		value := Expand(v.Value, env.Lookup)
		if v.ValueFrom != nil {
			var err error
			value, err = e.valueFrom(ctx, pod, container, v.ValueFrom)
			if errors.Is(err, errOmitted) {
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		env.Set(v.Name, value)
	}
	list := []v1.EnvVar{}
	for name, value := range env.All() {
		list = append(list, v1.EnvVar{Name: name, Value: value})
	}
	return list, nil
}

// Expand replaces $(NAME) by its value. $$ stands for $, so that $$(NAME) stays $(NAME); references to unknown names
// stay unchanged. Commands and arguments of containers are expanded too.
func Expand(text string, lookup func(string) (string, bool)) string {
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

// objects is what package volume reads config maps and secrets with.
type objects struct {
	volume.Objects // nil: neither tokens nor watches are asked for
	from           EnvironmentObjects
}

func (o objects) ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error) {
	object, err := o.from.ConfigMap(ctx, namespace, name)
	return object, notFound(err)
}

func (o objects) Secret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	object, err := o.from.Secret(ctx, namespace, name)
	return object, notFound(err)
}

func notFound(err error) error {
	if apierrors.IsNotFound(err) {
		return errors.Join(volume.ErrNotFound, err)
	}
	return err
}

func (e Environment) configMap(ctx context.Context, namespace, name string, optional *bool) (*v1.ConfigMap, error) {
	return volume.GetConfigMap(ctx, e.objects(), namespace, name, optional != nil && *optional)
}

func (e Environment) secret(ctx context.Context, namespace, name string, optional *bool) (*v1.Secret, error) {
	return volume.GetSecret(ctx, e.objects(), namespace, name, optional != nil && *optional)
}

func (e Environment) objects() volume.Objects {
	if e.Objects == nil {
		return nil
	}
	return objects{from: e.Objects}
}

// importAll sets what envFrom names: each key of a config map or secret.
func (e Environment) importAll(ctx context.Context, env *environ.Variables, pod *v1.Pod, from *v1.EnvFromSource) error {
	values := map[string]string{}
	kind, name := "", ""
	switch {
	case from.ConfigMapRef != nil:
		kind, name = "configMap", from.ConfigMapRef.Name
		object, err := e.configMap(ctx, pod.Namespace, name, from.ConfigMapRef.Optional)
		if err != nil {
			return err
		}
		maps.Copy(values, object.Data)
	case from.SecretRef != nil:
		kind, name = "secret", from.SecretRef.Name
		object, err := e.secret(ctx, pod.Namespace, name, from.SecretRef.Optional)
		if err != nil {
			return err
		}
		for key, value := range object.Data {
			values[key] = string(value)
		}
	}
	if skipped := e.setAll(env, from.Prefix, values); len(skipped) > 0 && e.Skipped != nil {
		e.Skipped(kind, name, skipped)
	}
	return nil
}

// setAll sets all values whose names can be set, and returns those whose cannot.
func (e Environment) setAll(env *environ.Variables, prefix string, values map[string]string) (skipped []string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		name := prefix + key
		if len(validation.IsRelaxedEnvVarName(name)) > 0 || e.ReservedPrefix != "" && strings.HasPrefix(name, e.ReservedPrefix) {
			skipped = append(skipped, name)
			continue
		}
		env.Set(name, values[key])
	}
	return skipped
}

// errOmitted says that an optional variable has no value and is not set.
var errOmitted = errors.New("omitted")

func (e Environment) valueFrom(ctx context.Context, pod *v1.Pod, container *v1.Container, from *v1.EnvVarSource) (string, error) {
	fields := volume.Fields{Pod: pod, Container: container, IPs: e.IPs, HostIPs: e.HostIPs, Allocatable: e.Allocatable}
	switch {
	case from.FieldRef != nil:
		return fields.Field(from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		return fields.Resource(from.ResourceFieldRef)
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		object, err := e.configMap(ctx, pod.Namespace, ref.Name, ref.Optional)
		if err != nil {
			return "", err
		}
		value, found := object.Data[ref.Key]
		return value, missingKey(found, ref.Optional, ref.Key, "ConfigMap", pod.Namespace, ref.Name)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		object, err := e.secret(ctx, pod.Namespace, ref.Name, ref.Optional)
		if err != nil {
			return "", err
		}
		value, found := object.Data[ref.Key]
		return string(value), missingKey(found, ref.Optional, ref.Key, "Secret", pod.Namespace, ref.Name)
	default:
		return "", errors.New("valueFrom is not supported")
	}
}

func missingKey(found bool, optional *bool, key, kind, namespace, name string) error {
	switch {
	case found:
		return nil
	case optional != nil && *optional:
		return errOmitted
	}
	return fmt.Errorf("couldn't find key %s in %s %s/%s", key, kind, namespace, name)
}
