package process

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/environ"
	"github.com/statusd/statusd/internal/node/volume"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
	"github.com/statusd/statusd/runtime/process/internal/shim"
)

// environment is what the container sees, in the order in which values may refer to
// earlier ones: what every program expects, where the API server is, what this runtime
// hands over, what the container takes from config maps and secrets, what it defines, and
// last the mark by which its processes are found.
func (r *Runtime) environment(ctx context.Context, p *pod, dir containerDir, manifest *v1.Pod, target *v1.Container, user *record.User) (*environ.Variables, error) {
	env := &environ.Variables{}
	env.Set("PATH", defaultPath)
	env.Set("HOME", home(user))
	if host, err := hostName(manifest); err == nil {
		env.Set("HOSTNAME", host)
	}
	r.nameAPIServer(env)
	env.Set(TerminationLogVariable, dir.TerminationLog())
	if err := p.handOverMounts(env, manifest, target); err != nil {
		return nil, err
	}
	if err := r.resolveVariables(ctx, env, manifest, target); err != nil {
		return nil, err
	}
	if err := p.handOverExpanded(env, manifest, target); err != nil {
		return nil, err
	}
	env.Set(shim.MarkerVariable, Scheme+filepath.Base(string(dir.Dir)))
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

// nameAPIServer sets the variables with which clients find the API server. The address is the one
// that statusd uses: the address of the kubernetes service may need a proxy that this machine does
// not have.
func (r *Runtime) nameAPIServer(env *environ.Variables) {
	host, port, err := net.SplitHostPort(r.options.APIServer)
	if err != nil {
		return
	}
	env.Set("KUBERNETES_SERVICE_HOST", host)
	env.Set("KUBERNETES_SERVICE_PORT", port)
	env.Set("KUBERNETES_SERVICE_PORT_HTTPS", port)
}

func (r *Runtime) fields(pod *v1.Pod, container *v1.Container) volume.Fields {
	fields := volume.Fields{Pod: pod, Container: container, IPs: r.options.Addresses()}
	if r.options.Allocatable != nil {
		fields.Allocatable = r.options.Allocatable()
	}
	return fields
}

// resolveVariables sets what the container takes from config maps and secrets, and what it defines.
func (r *Runtime) resolveVariables(ctx context.Context, env *environ.Variables, pod *v1.Pod, target *v1.Container) error {
	fields := r.fields(pod, target)
	resolver := runtime.Environment{IPs: fields.IPs, Allocatable: fields.Allocatable, ReservedPrefix: VariablePrefix}
	if r.options.Objects != nil {
		resolver.Objects = r.options.Objects
	}
	resolver.Skipped = func(kind, name string, keys []string) {
		r.options.Event(pod, target.Name, v1.EventTypeWarning, runtime.EventInvalidVariables, fmt.Sprintf(
			"Keys [%s] from the EnvFrom %s %s/%s were skipped since they are considered invalid environment variable names.",
			strings.Join(keys, ", "), kind, pod.Namespace, name))
	}
	var base []v1.EnvVar
	for name, value := range env.All() {
		base = append(base, v1.EnvVar{Name: name, Value: value})
	}
	resolved, err := resolver.Resolve(ctx, pod, target, base...)
	if err != nil {
		return err
	}
	for _, v := range resolved {
		env.Set(v.Name, v.Value)
	}
	return nil
}
