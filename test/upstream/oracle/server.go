package oracle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/statusd/statusd/podstatus"
)

// namespace is where all pods of all programs live.
const namespace = "default"

var podResource = schema.GroupResource{Resource: "pods"}

// Server is the part of an API server that a status manager can see: pods by name, status
// patches with a UID precondition and with one on the resource version, deletions with a UID
// precondition.
type Server struct {
	mu   sync.Mutex
	pods map[string]*v1.Pod // by name; replaced, never changed
	// statuses are those of the pods as JSON.
	statuses map[string][]byte
	version  int
	down     bool
	lose     bool // the answer of the next patch is lost
	deleted  []types.UID
	// held are the conditions that pods have had, by all their writers.
	held map[heldCondition]bool
	log  []string
}

// heldCondition is a condition that a pod has had, with its transition time.
type heldCondition struct {
	pod    string
	kind   v1.PodConditionType
	status v1.ConditionStatus
	unix   int64
	byNode bool
}

func newServer() *Server {
	return &Server{
		pods:     make(map[string]*v1.Pod),
		statuses: make(map[string][]byte),
		held:     make(map[heldCondition]bool),
	}
}

// Get answers as GET on a pod does.
func (s *Server) Get(name string) (*v1.Pod, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod, err := s.find(name)
	s.note("GET "+name, err)
	if err != nil {
		return nil, err
	}
	return pod.DeepCopy(), nil
}

// List answers as LIST on the pods of a node does.
func (s *Server) List() ([]v1.Pod, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errDown()
	}
	var list []v1.Pod
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		list = append(list, *s.pods[name].DeepCopy())
	}
	return list, nil
}

// PatchStatus answers as PATCH with a strategic merge patch on a pod's status does. The function
// amend, if it is not nil, may change what the patch makes of the status of the pod.
func (s *Server) PatchStatus(name string, patch []byte, amend func(pod *v1.Pod, next *v1.PodStatus)) (*v1.Pod, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod, err := s.find(name)
	if err == nil {
		pod, err = s.patch(pod, patch, amend)
	}
	if err == nil && s.lose {
		s.lose = false
		err = apierrors.NewTimeoutError("the answer is lost", 0)
	}
	s.note("PATCH "+name+" "+string(patch), err)
	if err != nil {
		return nil, err
	}
	return pod.DeepCopy(), nil
}

// Delete answers as DELETE with grace period 0 and a UID precondition does.
func (s *Server) Delete(name string, uid types.UID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod, err := s.find(name)
	if err == nil && pod.UID != uid {
		err = apierrors.NewConflict(podResource, name, errors.New("the UID in the precondition is not that of the pod"))
	}
	if err == nil {
		delete(s.pods, name)
		s.deleted = append(s.deleted, uid)
	}
	s.note(fmt.Sprintf("DELETE %s uid=%s", name, uid), err)
	return err
}

// changes counts what the node has written and deleted, and what others have written.
func (s *Server) changes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version + len(s.deleted)
}

// hasDeleted reports whether the node has deleted the pod.
func (s *Server) hasDeleted(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.deleted, uid)
}

// change is a change of a pod by another client. change does nothing if the pod does not exist, and
// cannot clear generations.
func (s *Server) change(name string, edit func(*v1.Pod)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.pods[name]; ok {
		pod := old.DeepCopy()
		edit(pod)
		keepGenerations(&pod.Status, &old.Status)
		s.store(pod, false)
	}
}

// create stores a pod, in place of any other of its name.
func (s *Server) create(pod *v1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(pod.DeepCopy(), false)
}

// wouldStepBack reports whether a condition with the earlier of two times would have set the
// API's back: another writer gave it the later of the two, or the API had it with another
// status, or not at all, in between, so that the transition is younger.
func (s *Server) wouldStepBack(pod string, earlier, later *v1.PodCondition) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.held {
		if h.pod != pod || h.kind != later.Type || h.unix < earlier.LastTransitionTime.Unix() || h.unix > later.LastTransitionTime.Unix() {
			continue
		}
		if h.status != later.Status || h.unix == later.LastTransitionTime.Unix() && !h.byNode {
			return true
		}
	}
	return false
}

// hasHeld reports whether the pod has had the condition with this transition time.
func (s *Server) hasHeld(pod string, c *v1.PodCondition) bool {
	return s.othersWrote(pod, c) || s.wrote(pod, c, true)
}

// othersWrote reports whether another writer than the node gave the pod the condition with this transition time.
func (s *Server) othersWrote(pod string, c *v1.PodCondition) bool { return s.wrote(pod, c, false) }

func (s *Server) wrote(pod string, c *v1.PodCondition, byNode bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[heldCondition{pod: pod, kind: c.Type, status: c.Status, unix: c.LastTransitionTime.Unix(), byNode: byNode}]
}

// remove takes a pod away, as a deletion by another client.
func (s *Server) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, name)
}

// current returns the pod of this name, or nil. The pod must not be changed.
func (s *Server) current(name string) *v1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[name]
}

// all returns the pods by name. They must not be changed.
func (s *Server) all() map[string]*v1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.pods)
}

func (s *Server) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
	s.lose = false
}

func (s *Server) loseNext() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = true
}

// losing says that the answer that is to be lost has yet to come.
func (s *Server) losing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lose
}

// requests returns the requests since the last call, with the answers.
func (s *Server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log = nil
	return log
}

func (s *Server) note(request string, err error) {
	if err != nil {
		request += " ✗ " + string(apierrors.ReasonForError(err))
	}
	s.log = append(s.log, clock()+" "+request)
}

func (s *Server) find(name string) (*v1.Pod, error) {
	if s.down {
		return nil, errDown()
	}
	pod, ok := s.pods[name]
	if !ok {
		return nil, apierrors.NewNotFound(podResource, name)
	}
	return pod, nil
}

func errDown() error { return apierrors.NewServiceUnavailable("the oracle has the API down") }

func (s *Server) store(pod *v1.Pod, byNode bool) {
	pairAddresses(&pod.Status)
	s.version++
	pod.ResourceVersion = strconv.Itoa(s.version)
	if old := s.pods[pod.Name]; old != nil {
		for _, c := range old.Status.Conditions {
			if podstatus.FindCondition(pod.Status.Conditions, c.Type) == nil { // none is another status than any
				s.held[heldCondition{pod.Name, c.Type, "", now().Unix(), byNode}] = true
			}
		}
	}
	s.pods[pod.Name], s.statuses[pod.Name] = pod, mustMarshal(&pod.Status)
	for _, c := range pod.Status.Conditions {
		s.held[heldCondition{pod.Name, c.Type, c.Status, c.LastTransitionTime.Unix(), byNode}] = true
	}
}

// statusOnly is the part of a pod that a patch of the status subresource can reach.
type statusOnly struct {
	Metadata struct {
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion"`
	} `json:"metadata"`
	Status v1.PodStatus `json:"status"`
}

// patch applies a patch to the status and stores the result, unless nothing changed.
func (s *Server) patch(pod *v1.Pod, patch []byte, amend func(*v1.Pod, *v1.PodStatus)) (*v1.Pod, error) {
	var asked statusOnly
	if err := json.Unmarshal(patch, &asked); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if asked.Metadata.UID != pod.UID {
		return nil, apierrors.NewConflict(podResource, pod.Name, errors.New("the UID in the patch is not that of the pod"))
	}
	if version := asked.Metadata.ResourceVersion; version != "" && version != pod.ResourceVersion {
		return nil, apierrors.NewConflict(podResource, pod.Name, errors.New("the pod has another resource version by now"))
	}
	status, err := patchedStatus(s.statuses[pod.Name], patch)
	if err != nil {
		return nil, err
	}
	if err := prepareStatus(status, &pod.Status); err != nil {
		return nil, err
	}
	if amend != nil {
		amend(pod, status)
	}
	if bytes.Equal(mustMarshal(status), s.statuses[pod.Name]) {
		return pod, nil
	}
	next := pod.DeepCopy()
	next.Status = *status
	s.store(next, true)
	return next, nil
}

// patchedStatus applies a strategic merge patch to a status, as JSON, by the schema of v1.Pod.
func patchedStatus(status, patch []byte) (*v1.PodStatus, error) {
	before := slices.Concat([]byte(`{"status":`), status, []byte("}"))
	after, err := strategicpatch.StrategicMergePatch(before, patch, v1.Pod{})
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	var patched statusOnly
	if err := json.Unmarshal(after, &patched); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return &patched.Status, nil
}

// prepareStatus does what the API server does to each status that is written: the QoS
// class cannot be changed, and it and observed generations cannot be cleared.
func prepareStatus(status, old *v1.PodStatus) error {
	pairAddresses(status)
	if status.QOSClass == "" {
		status.QOSClass = old.QOSClass
	}
	if status.QOSClass != old.QOSClass {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "", nil)
	}
	keepGenerations(status, old)
	return nil
}

// keepGenerations keeps the old observed generations where the new status has none.
func keepGenerations(status, old *v1.PodStatus) {
	if status.ObservedGeneration == 0 {
		status.ObservedGeneration = old.ObservedGeneration
	}
	generations := make(map[v1.PodConditionType]int64)
	for _, c := range old.Conditions {
		generations[c.Type] = c.ObservedGeneration
	}
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.ObservedGeneration == 0 {
			c.ObservedGeneration = generations[c.Type]
		}
	}
}

// pairAddresses makes the main addresses and the lists of addresses agree, as reading and writing
// an object does in the API server: the main one counts if it is there.
func pairAddresses(status *v1.PodStatus) {
	if main := status.PodIP; main != "" && (len(status.PodIPs) == 0 || status.PodIPs[0].IP != main) {
		status.PodIPs = []v1.PodIP{{IP: main}}
	} else if main == "" && len(status.PodIPs) > 0 {
		status.PodIP = status.PodIPs[0].IP
	}
	if main := status.HostIP; main != "" && (len(status.HostIPs) == 0 || status.HostIPs[0].IP != main) {
		status.HostIPs = []v1.HostIP{{IP: main}}
	} else if main == "" && len(status.HostIPs) > 0 {
		status.HostIP = status.HostIPs[0].IP
	}
}

func mustMarshal(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("oracle: a status that cannot be marshalled: %v", err))
	}
	return data
}

// now is the clock of the bubble.
func now() metav1.Time { return metav1.Now() }
