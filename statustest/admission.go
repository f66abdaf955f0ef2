package statustest

import (
	"encoding/json"
	"fmt"
	"net/netip"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// patch does what the server does with a patch of a status: it applies it, completes what the result
// lacks, has webhooks change it, refuses what is invalid, and stores the rest.
func (s *Server) patch(namespace, name string, uid types.UID, version string, apply func(*v1.Pod) (*v1.Pod, error)) (*v1.Pod, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	old, err := s.find(namespace, name)
	if err != nil {
		return nil, err
	}
	if node := s.user(); node != "" && old.Spec.NodeName != node {
		return nil, BoundElsewhere(node, "update pod status for pods", name) // before the UID is compared
	}
	if uid != "" && uid != old.UID {
		return nil, invalid(name, field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable"))
	}
	if version != "" && version != old.ResourceVersion {
		return nil, Conflict(Request{Name: name})
	}
	patched, err := apply(old)
	if err != nil {
		return nil, err
	}
	SetDefaults(&patched.Status)
	keepOld(&patched.Status, &old.Status)
	s.mu.Lock()
	webhook := s.webhook
	s.mu.Unlock()
	if webhook != nil {
		webhook(patched)
		SetDefaults(&patched.Status)
	}
	if problems := validate(patched, old); len(problems) > 0 {
		return nil, invalid(name, problems...)
	}
	return s.store(patched), nil
}

// apply returns the patched pod. Only the status and the metadata that its users may write can
// change through the subresource.
func apply(pod *v1.Pod, patch []byte) (*v1.Pod, error) {
	before, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, &v1.Pod{})
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return changedBy(pod, after)
}

// changedBy is the pod with what a patch of its status may change.
func changedBy(pod *v1.Pod, after []byte) (*v1.Pod, error) {
	patched := &v1.Pod{}
	if err := json.Unmarshal(after, patched); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	patched.Spec, patched.OwnerReferences = pod.Spec, pod.OwnerReferences
	patched.DeletionTimestamp, patched.DeletionGracePeriodSeconds = pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds
	return patched, nil
}

// SetDefaults makes podIP and podIPs consistent, as in every object that the server reads or
// returns: a podIP that is not the first of podIPs replaces them all, and a missing podIP is set to
// the first of podIPs. The server does not do this for hostIP.
func SetDefaults(status *v1.PodStatus) {
	switch {
	case status.PodIP != "" && (len(status.PodIPs) == 0 || status.PodIPs[0].IP != status.PodIP):
		status.PodIPs = []v1.PodIP{{IP: status.PodIP}}
	case len(status.PodIPs) > 0:
		status.PodIP = status.PodIPs[0].IP
	}
}

// keepOld restores what the server lets no writer clear.
func keepOld(status, old *v1.PodStatus) {
	if status.QOSClass == "" {
		status.QOSClass = old.QOSClass
	}
	if status.ObservedGeneration == 0 {
		status.ObservedGeneration = old.ObservedGeneration
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		for j := range old.Conditions {
			if c.ObservedGeneration == 0 && old.Conditions[j].Type == c.Type {
				c.ObservedGeneration = old.Conditions[j].ObservedGeneration
			}
		}
	}
}

// validate returns what the server refuses of a status.
func validate(pod, old *v1.Pod) (problems field.ErrorList) {
	path := field.NewPath("status")
	status := &pod.Status
	if status.QOSClass != old.Status.QOSClass {
		problems = append(problems, field.Invalid(path.Child("qosClass"), status.QOSClass, "field is immutable"))
	}
	if name := status.NominatedNodeName; name != "" && name != old.Status.NominatedNodeName {
		problems = append(problems, field.Forbidden(path.Child("nominatedNodeName"), "may not be set on pods that are already bound to a node"))
	}
	if status.ObservedGeneration < 0 {
		problems = append(problems, field.Invalid(path.Child("observedGeneration"), status.ObservedGeneration, "must be a non-negative integer"))
	}
	var podIPs, hostIPs []string
	for _, ip := range status.PodIPs {
		podIPs = append(podIPs, ip.IP)
	}
	for _, ip := range status.HostIPs {
		hostIPs = append(hostIPs, ip.IP)
	}
	problems = append(problems, validateIPs(path.Child("podIPs"), podIPs)...)
	problems = append(problems, validateIPs(path.Child("hostIPs"), hostIPs)...)
	if len(status.HostIPs) > 0 && status.HostIPs[0].IP != status.HostIP {
		problems = append(problems, field.Invalid(path.Child("hostIPs").Index(0).Child("ip"), status.HostIPs[0].IP, "must be equal to `hostIP`"))
	}
	return append(problems, validateEnds(path.Child("containerStatuses"), pod, old)...)
}

// validateIPs requires IPs, and of each family no more than one.
func validateIPs(path *field.Path, ips []string) (problems field.ErrorList) {
	families := map[bool]bool{}
	for i, ip := range ips {
		parsed, err := netip.ParseAddr(ip)
		if err != nil {
			problems = append(problems, field.Invalid(path.Index(i), ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))
			if len(ips) > 1 {
				problems = append(problems, field.InternalError(path, fmt.Errorf("failed to check for dual stack: %w", err)))
			}
		}
		families[parsed.Is4()] = true
	}
	if len(ips) > len(families) {
		problems = append(problems, field.Invalid(path, ips, "may specify no more than one IP for each IP family"))
	}
	return problems
}

// validateEnds refuses that a container which has terminated for good runs again.
func validateEnds(path *field.Path, pod, old *v1.Pod) (problems field.ErrorList) {
	for _, before := range old.Status.ContainerStatuses {
		end := before.State.Terminated
		if end == nil || pod.Spec.RestartPolicy == v1.RestartPolicyAlways || end.ExitCode != 0 && pod.Spec.RestartPolicy == v1.RestartPolicyOnFailure {
			continue
		}
		for i, after := range pod.Status.ContainerStatuses {
			if after.Name == before.Name && after.State.Terminated == nil {
				problems = append(problems, field.Forbidden(path.Index(i).Child("state"), "may not be transitioned to non-terminated state"))
			}
		}
	}
	return problems
}

func invalid(name string, problems ...*field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, name, problems)
}
