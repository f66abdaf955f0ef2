package manifest

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/statusd/statusd/podstatus"
)

func validateContainers(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), "a pod has at least one container"))
	}
	volumes := sets.New[string]()
	for _, v := range spec.Volumes {
		volumes.Insert(v.Name)
	}
	names := sets.New[string]() // shared: an init container may not have a container's name
	for i := range spec.InitContainers {
		c, at := &spec.InitContainers[i], path.Child("initContainers").Index(i)
		errs = append(errs, validateContainer(c, volumes, names, at)...)
		if !podstatus.IsSidecar(c) {
			errs = append(errs, validateRunsToCompletion(c, at)...)
		}
	}
	for i := range spec.Containers {
		errs = append(errs, validateContainer(&spec.Containers[i], volumes, names, path.Child("containers").Index(i))...)
	}
	return errs
}

func validateContainer(c *v1.Container, volumes, names sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, uniqueLabel(path.Child("name"), c.Name, names)...)
	switch {
	case c.Image == "":
		errs = append(errs, field.Required(path.Child("image"), "which image to run"))
	case strings.TrimSpace(c.Image) != c.Image:
		errs = append(errs, field.Invalid(path.Child("image"), c.Image, "must not begin or end with a space"))
	}
	errs = append(errs, oneOf(path.Child("imagePullPolicy"), c.ImagePullPolicy, v1.PullAlways, v1.PullIfNotPresent, v1.PullNever)...)
	errs = append(errs, oneOf(path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy, v1.TerminationMessageReadFile, v1.TerminationMessageFallbackToLogsOnError)...)
	if p := c.RestartPolicy; p != nil {
		errs = append(errs, oneOf(path.Child("restartPolicy"), *p, v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyOnFailure, v1.ContainerRestartPolicyNever)...)
	}
	errs = append(errs, validatePorts(c.Ports, path.Child("ports"))...)
	errs = append(errs, validateEnv(c.Env, path.Child("env"))...)
	errs = append(errs, validateMounts(c.VolumeMounts, volumes, path.Child("volumeMounts"))...)
	errs = append(errs, validateResources(c.Resources, path.Child("resources"))...)
	errs = append(errs, validateProbe(c.ReadinessProbe, true, path.Child("readinessProbe"))...)
	errs = append(errs, validateProbe(c.LivenessProbe, false, path.Child("livenessProbe"))...)
	errs = append(errs, validateProbe(c.StartupProbe, false, path.Child("startupProbe"))...)
	if l := c.Lifecycle; l != nil {
		errs = append(errs, validateHook(l.PostStart, path.Child("lifecycle", "postStart"))...)
		errs = append(errs, validateHook(l.PreStop, path.Child("lifecycle", "preStop"))...)
	}
	return errs
}

// validateRunsToCompletion rejects fields that make no sense for an init container that must
// end before the next one starts.
func validateRunsToCompletion(c *v1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	const why = "may only be set on an init container with restartPolicy Always"
	if c.Lifecycle != nil {
		errs = append(errs, field.Forbidden(path.Child("lifecycle"), why))
	}
	if c.ReadinessProbe != nil {
		errs = append(errs, field.Forbidden(path.Child("readinessProbe"), why))
	}
	if c.LivenessProbe != nil {
		errs = append(errs, field.Forbidden(path.Child("livenessProbe"), why))
	}
	if c.StartupProbe != nil {
		errs = append(errs, field.Forbidden(path.Child("startupProbe"), why))
	}
	return errs
}

func validatePorts(ports []v1.ContainerPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, p := range ports {
		at := path.Index(i)
		errs = append(errs, validPort(at.Child("containerPort"), int(p.ContainerPort))...)
		if p.HostPort != 0 {
			errs = append(errs, validPort(at.Child("hostPort"), int(p.HostPort))...)
		}
		errs = append(errs, oneOf(at.Child("protocol"), p.Protocol, v1.ProtocolTCP, v1.ProtocolUDP, v1.ProtocolSCTP)...)
		if p.Name == "" {
			continue
		}
		if wrong := validation.IsValidPortName(p.Name); len(wrong) > 0 {
			errs = append(errs, field.Invalid(at.Child("name"), p.Name, strings.Join(wrong, "; ")))
		}
		if names.Has(p.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
		}
		names.Insert(p.Name)
	}
	return errs
}

func validPort(path *field.Path, port int) field.ErrorList {
	if wrong := validation.IsValidPortNum(port); len(wrong) > 0 {
		return field.ErrorList{field.Invalid(path, port, strings.Join(wrong, "; "))}
	}
	return nil
}

func validPortReference(path *field.Path, port intstr.IntOrString) field.ErrorList {
	if port.Type == intstr.Int {
		return validPort(path, port.IntValue())
	}
	if wrong := validation.IsValidPortName(port.StrVal); len(wrong) > 0 {
		return field.ErrorList{field.Invalid(path, port.StrVal, strings.Join(wrong, "; "))}
	}
	return nil
}

func validateEnv(env []v1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, e := range env {
		at := path.Index(i)
		if e.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), "the name of the variable"))
		} else if wrong := validation.IsRelaxedEnvVarName(e.Name); len(wrong) > 0 {
			errs = append(errs, field.Invalid(at.Child("name"), e.Name, strings.Join(wrong, "; ")))
		}
		if e.Value != "" && e.ValueFrom != nil {
			errs = append(errs, field.Invalid(at.Child("valueFrom"), "", "may not be given together with a value"))
		}
	}
	return errs
}

func validateMounts(mounts []v1.VolumeMount, volumes sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	paths := sets.New[string]()
	for i, m := range mounts {
		at := path.Index(i)
		if !volumes.Has(m.Name) {
			errs = append(errs, field.NotFound(at.Child("name"), m.Name))
		}
		switch {
		case m.MountPath == "":
			errs = append(errs, field.Required(at.Child("mountPath"), "where in the container"))
		case paths.Has(m.MountPath):
			errs = append(errs, field.Duplicate(at.Child("mountPath"), m.MountPath))
		}
		paths.Insert(m.MountPath)
	}
	return errs
}

func validateProbe(p *v1.Probe, mayNeedSeveralSuccesses bool, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	var errs field.ErrorList
	errs = append(errs, oneHandler(path, p.Exec, p.HTTPGet, p.TCPSocket, nil, p.GRPC)...)
	errs = append(errs, atLeast(path.Child("initialDelaySeconds"), p.InitialDelaySeconds, 0)...)
	errs = append(errs, atLeast(path.Child("timeoutSeconds"), p.TimeoutSeconds, 1)...)
	errs = append(errs, atLeast(path.Child("periodSeconds"), p.PeriodSeconds, 1)...)
	errs = append(errs, atLeast(path.Child("successThreshold"), p.SuccessThreshold, 1)...)
	errs = append(errs, atLeast(path.Child("failureThreshold"), p.FailureThreshold, 1)...)
	if !mayNeedSeveralSuccesses && p.SuccessThreshold > 1 {
		errs = append(errs, field.Invalid(path.Child("successThreshold"), p.SuccessThreshold, "must be 1"))
	}
	if s := p.TerminationGracePeriodSeconds; s != nil {
		if mayNeedSeveralSuccesses {
			errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *s, "must not be set for readiness probes: they kill nothing"))
		} else {
			errs = append(errs, atLeast(path.Child("terminationGracePeriodSeconds"), *s, 1)...)
		}
	}
	return errs
}

func validateHook(h *v1.LifecycleHandler, path *field.Path) field.ErrorList {
	if h == nil {
		return nil
	}
	return oneHandler(path, h.Exec, h.HTTPGet, h.TCPSocket, h.Sleep, nil)
}

// oneHandler checks that exactly one action is given, and that one.
func oneHandler(path *field.Path, exec *v1.ExecAction, http *v1.HTTPGetAction, tcp *v1.TCPSocketAction, sleep *v1.SleepAction, grpc *v1.GRPCAction) field.ErrorList {
	var errs field.ErrorList
	handlers := 0
	if exec != nil {
		handlers++
		if len(exec.Command) == 0 {
			errs = append(errs, field.Required(path.Child("exec", "command"), "what to run"))
		}
	}
	if http != nil {
		handlers++
		errs = append(errs, validPortReference(path.Child("httpGet", "port"), http.Port)...)
		errs = append(errs, oneOf(path.Child("httpGet", "scheme"), http.Scheme, v1.URISchemeHTTP, v1.URISchemeHTTPS)...)
	}
	if tcp != nil {
		handlers++
		errs = append(errs, validPortReference(path.Child("tcpSocket", "port"), tcp.Port)...)
	}
	if sleep != nil {
		handlers++
		errs = append(errs, atLeast(path.Child("sleep", "seconds"), sleep.Seconds, 0)...)
	}
	if grpc != nil {
		handlers++
		errs = append(errs, validPort(path.Child("grpc", "port"), int(grpc.Port))...)
	}
	if handlers == 0 {
		return field.ErrorList{field.Required(path, "one action, such as exec, httpGet or tcpSocket")}
	}
	if handlers > 1 {
		errs = append(errs, field.Forbidden(path, fmt.Sprintf("has %d actions, but may have only one", handlers)))
	}
	return errs
}
