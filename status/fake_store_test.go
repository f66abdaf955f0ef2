package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// patch is what the server does with a patch of a status: it applies it, completes what
// the result lacks, has webhooks change it, refuses what is invalid, and stores the rest.
func (f *fakeAPI) patch(namespace, name string, uid types.UID, patch []byte) (*v1.Pod, error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	old, err := f.find(namespace, name)
	if err != nil {
		return nil, err
	}
	if f.node != "" && old.Spec.NodeName != f.node {
		return nil, boundElsewhere("update pod status for pods", name) // before the UID is looked at
	}
	if uid != old.UID {
		return nil, invalid(name, field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable"))
	}
	patched := apply(old, patch)
	if patched.ResourceVersion != old.ResourceVersion {
		return nil, apierrors.NewConflict(podResource, name, errors.New("the object has been modified"))
	}
	fillAddresses(&patched.Status)
	keepOld(&patched.Status, &old.Status)
	f.mu.Lock()
	mutate := f.mutate
	f.mu.Unlock()
	if mutate != nil {
		mutate(patched)
		fillAddresses(&patched.Status)
	}
	if problems := validate(patched, old); len(problems) > 0 {
		return nil, invalid(name, problems...)
	}
	return f.store(patched), nil
}

func apply(pod *v1.Pod, patch []byte) *v1.Pod {
	before, err := json.Marshal(pod)
	must(err)
	after, err := strategicpatch.StrategicMergePatch(before, patch, &v1.Pod{})
	must(err)
	patched := &v1.Pod{}
	must(json.Unmarshal(after, patched))
	return patched
}

// fillAddresses makes podIP and podIPs agree, as every object that the server reads or
// hands out does: a podIP that is not the first of podIPs replaces them all, and one that
// is missing is the first of them. The server does nothing of the kind for hostIP.
func fillAddresses(status *v1.PodStatus) {
	switch {
	case status.PodIP != "" && (len(status.PodIPs) == 0 || status.PodIPs[0].IP != status.PodIP):
		status.PodIPs = []v1.PodIP{{IP: status.PodIP}}
	case len(status.PodIPs) > 0:
		status.PodIP = status.PodIPs[0].IP
	}
}

// keepOld puts back what the server lets no writer clear.
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

// validate says what the server refuses of a status.
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

// validateIPs wants IPs, and of each family no more than one.
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

// validateEnds refuses that a container which has ended for good runs again.
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

// put stores a pod as it is, as its creator or another writer would, and tells the watch.
func (f *fakeAPI) put(pod *v1.Pod) *v1.Pod {
	f.writing.Lock()
	defer f.writing.Unlock()
	pod = pod.DeepCopy()
	fillAddresses(&pod.Status)
	if pod.Status.QOSClass == "" {
		pod.Status.QOSClass = v1.PodQOSBestEffort // the server computes it when a pod is created
	}
	return f.store(pod)
}

// store keeps a pod under a new resource version, unless nothing has changed: then the
// server writes nothing, and the watch sees nothing. The caller holds the lock writing.
func (f *fakeAPI) store(pod *v1.Pod) *v1.Pod {
	pod = pod.DeepCopy()
	f.mu.Lock()
	name := pod.Namespace + "/" + pod.Name
	if old, ok := f.pods[name]; ok {
		pod.ResourceVersion = old.ResourceVersion
		if equality.Semantic.DeepEqual(old, pod) {
			f.mu.Unlock()
			return pod
		}
	}
	f.version++
	pod.ResourceVersion = strconv.Itoa(f.version)
	f.pods[name] = pod
	watch := f.watch
	f.mu.Unlock()
	if watch != nil {
		watch(pod.DeepCopy())
	}
	return pod.DeepCopy()
}

func (f *fakeAPI) remove(namespace, name string) {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	f.version++
	pod, removed := f.pods[namespace+"/"+name], f.removed
	delete(f.pods, namespace+"/"+name)
	f.mu.Unlock()
	if pod != nil && removed != nil {
		removed(pod.DeepCopy())
	}
}

// backup is everything that the API server has stored at a moment.
type backup struct {
	pods    map[string]*v1.Pod
	version int
}

func (f *fakeAPI) backup() backup {
	f.mu.Lock()
	defer f.mu.Unlock()
	return backup{pods: maps.Clone(f.pods), version: f.version} // a stored pod is never changed
}

// restore puts a backup in the place of what is stored, so that resource versions go back
// and are given out again. The watch begins with a new list and tells of the pods whose
// version is another one now. Those that are gone are returned: the watch has no event for them.
func (f *fakeAPI) restore(b backup) (gone []*v1.Pod) {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	before := f.pods
	f.pods, f.version = maps.Clone(b.pods), b.version
	watch := f.watch
	f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was := before[name]
		if now, ok := b.pods[name]; !ok || now.UID != was.UID {
			gone = append(gone, was.DeepCopy())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.pods)) {
		now := b.pods[name]
		if was, ok := before[name]; watch != nil && (!ok || was.ResourceVersion != now.ResourceVersion) {
			watch(now.DeepCopy())
		}
	}
	return gone
}

// write changes a pod of the API as a second writer does; there must be one.
func (f *fakeAPI) write(pod *v1.Pod, change func(*v1.Pod)) *v1.Pod {
	stored, err := f.find(pod.Namespace, pod.Name)
	if err != nil {
		panic(fmt.Sprintf("there is no pod to change: %v", err))
	}
	change(stored)
	return f.put(stored)
}
