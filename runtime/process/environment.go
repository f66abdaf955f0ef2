package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
	"github.com/statusd/statusd/runtime/process/internal/shim"
	"github.com/statusd/statusd/volume"
)

// environment is what the container sees, in the order in which values may refer to
// earlier ones: what every program expects, where the API server is, what this runtime
// hands over, what the container takes from config maps and secrets, what it defines, and
// last the mark by which its processes are found.
func (r *Runtime) environment(ctx context.Context, p *pod, dir containerDir, manifest *v1.Pod, target *v1.Container, user *record.User) (*variables, error) {
	env := &variables{}
	env.set("PATH", defaultPath)
	env.set("HOME", home(user))
	if host, err := hostName(manifest); err == nil {
		env.set("HOSTNAME", host)
	}
	r.nameAPIServer(env)
	env.set(TerminationLogVariable, dir.TerminationLog())
	if err := p.handOverMounts(env, manifest, target); err != nil {
		return nil, err
	}
	if err := r.importVariables(ctx, env, manifest, target); err != nil {
		return nil, err
	}
	if err := r.defineVariables(ctx, env, manifest, target); err != nil {
		return nil, err
	}
	if err := p.handOverExpanded(env, manifest, target); err != nil {
		return nil, err
	}
	env.set(shim.MarkerVariable, Scheme+filepath.Base(string(dir.Dir)))
	return env, nil
}

// hostName is what a pod is called on the network: as it asks for, by its own name, or as the
// machine if it asks for the machine's network.
func hostName(pod *v1.Pod) (string, error) {
	if pod.Spec.HostNetwork {
		return os.Hostname()
	}
	return cmp.Or(pod.Spec.Hostname, pod.Name), nil
}

// nameAPIServer sets what clients inside a cluster look for. It is the address that
// statusd itself uses: that of the kubernetes service may need a proxy that this machine
// does not have.
func (r *Runtime) nameAPIServer(env *variables) {
	host, port, err := net.SplitHostPort(r.options.APIServer)
	if err != nil {
		return
	}
	env.set("KUBERNETES_SERVICE_HOST", host)
	env.set("KUBERNETES_SERVICE_PORT", port)
	env.set("KUBERNETES_SERVICE_PORT_HTTPS", port)
}

func (r *Runtime) fields(pod *v1.Pod, container *v1.Container) volume.Fields {
	fields := volume.Fields{Pod: pod, Container: container, IPs: r.options.Addresses()}
	if r.options.Allocatable != nil {
		fields.Allocatable = r.options.Allocatable()
	}
	return fields
}

// importVariables sets what envFrom names: each key of a config map or secret.
func (r *Runtime) importVariables(ctx context.Context, env *variables, pod *v1.Pod, target *v1.Container) error {
	for _, from := range target.EnvFrom {
		values := map[string]string{}
		kind, name := "", ""
		switch {
		case from.ConfigMapRef != nil:
			kind, name = "configMap", from.ConfigMapRef.Name
			object, err := volume.GetConfigMap(ctx, r.options.Objects, pod.Namespace, name, isTrue(from.ConfigMapRef.Optional))
			if err != nil {
				return err
			}
			maps.Copy(values, object.Data)
		case from.SecretRef != nil:
			kind, name = "secret", from.SecretRef.Name
			object, err := volume.GetSecret(ctx, r.options.Objects, pod.Namespace, name, isTrue(from.SecretRef.Optional))
			if err != nil {
				return err
			}
			for key, value := range object.Data {
				values[key] = string(value)
			}
		}
		if skipped := setAll(env, from.Prefix, values); len(skipped) > 0 {
			r.options.Event(pod, target.Name, v1.EventTypeWarning, runtime.EventInvalidVariables, fmt.Sprintf(
				"Keys [%s] from the EnvFrom %s %s/%s were skipped since they are considered invalid environment variable names.",
				strings.Join(skipped, ", "), kind, pod.Namespace, name))
		}
	}
	return nil
}

// setAll sets all values whose names can be set, and returns those whose cannot.
func setAll(env *variables, prefix string, values map[string]string) (skipped []string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		name := prefix + key
		if len(validation.IsRelaxedEnvVarName(name)) > 0 || strings.HasPrefix(name, VariablePrefix) {
			skipped = append(skipped, name)
			continue
		}
		env.set(name, values[key])
	}
	return skipped
}

// errOmitted says that an optional variable has no value and is not set.
var errOmitted = errors.New("omitted")

func (r *Runtime) defineVariables(ctx context.Context, env *variables, pod *v1.Pod, target *v1.Container) error {
	for _, v := range target.Env {
		value := expand(v.Value, env.lookup)
		if v.ValueFrom != nil {
			var err error
			value, err = r.valueFrom(ctx, pod, target, v.ValueFrom)
			if errors.Is(err, errOmitted) {
				continue
			}
			if err != nil {
				return err
			}
		}
		env.set(v.Name, value)
	}
	return nil
}

// valueFrom is for sources that Check has let through.
func (r *Runtime) valueFrom(ctx context.Context, pod *v1.Pod, target *v1.Container, from *v1.EnvVarSource) (string, error) {
	switch {
	case from.FieldRef != nil:
		return r.fields(pod, target).Field(from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		return r.fields(pod, target).Resource(from.ResourceFieldRef)
	case from.ConfigMapKeyRef != nil:
		ref, optional := from.ConfigMapKeyRef, isTrue(from.ConfigMapKeyRef.Optional)
		object, err := volume.GetConfigMap(ctx, r.options.Objects, pod.Namespace, ref.Name, optional)
		if err != nil {
			return "", err
		}
		value, found := object.Data[ref.Key]
		return value, missingKey(found, optional, ref.Key, "ConfigMap", pod.Namespace, ref.Name)
	case from.SecretKeyRef != nil:
		ref, optional := from.SecretKeyRef, isTrue(from.SecretKeyRef.Optional)
		object, err := volume.GetSecret(ctx, r.options.Objects, pod.Namespace, ref.Name, optional)
		if err != nil {
			return "", err
		}
		value, found := object.Data[ref.Key]
		return string(value), missingKey(found, optional, ref.Key, "Secret", pod.Namespace, ref.Name)
	default:
		return "", errors.New("valueFrom is not supported")
	}
}

func missingKey(found, optional bool, key, kind, namespace, name string) error {
	switch {
	case found:
		return nil
	case optional:
		return errOmitted
	}
	return fmt.Errorf("couldn't find key %s in %s %s/%s", key, kind, namespace, name)
}
