package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// state is all that is recorded of a pod at one time, in words that mean the same on any
// node: without times, addresses and identifiers.
type state struct {
	headline string   // what kubectl prints
	details  []string // what it does not
}

func (s state) equal(t state) bool {
	return s.headline == t.headline && slices.Equal(s.details, t.details)
}

// gone is the state of a pod that is no longer in the API.
var gone = state{headline: "gone"}

// describe puts an event into words.
func describe(e event) state {
	if e.kind == watch.Deleted {
		return gone
	}
	status := &e.pod.Status
	s := state{headline: fmt.Sprintf("%-5s %-20s %s", e.row.ready, e.row.status, e.row.restarts)}
	s.details = append(s.details, overview(e.pod))
	if status.Reason != "" || status.Message != "" {
		s.details = append(s.details, strings.TrimSpace("because "+status.Reason+" "+quote(status.Message)))
	}
	if len(status.Conditions) > 0 {
		s.details = append(s.details, conditions(status.Conditions))
	}
	for i := range status.InitContainerStatuses {
		s.details = append(s.details, "init "+container(&status.InitContainerStatuses[i]))
	}
	for i := range status.ContainerStatuses {
		s.details = append(s.details, container(&status.ContainerStatuses[i]))
	}
	for i, line := range s.details {
		s.details[i] = quantity.ReplaceAllString(strings.ReplaceAll(line, string(e.pod.UID), "UID"), "$1 N")
	}
	return s
}

// quantity is what the message of an eviction says of the machine, which differs each time.
var quantity = regexp.MustCompile(`(quantity:|available:|was using) [0-9]+[KMG]?i?`)

// overview is the phase, how far the agent has seen the pod's generations, and which of
// the fields without a text of their own are set.
func overview(pod *v1.Pod) string {
	words := []string{fmt.Sprintf("%s, generation %d of %d", pod.Status.Phase, pod.Status.ObservedGeneration, pod.Generation)}
	for _, field := range []struct {
		set  bool
		word string
	}{
		{pod.Annotations[v1.MirrorPodAnnotationKey] != "", "mirror"},
		{pod.Status.StartTime != nil, "started"},
		{pod.Status.HostIP != "", "host IP"},
		{pod.Status.PodIP != "", "pod IP"},
		{pod.Status.QOSClass != "", string(pod.Status.QOSClass)},
	} {
		if field.set {
			words = append(words, field.word)
		}
	}
	return strings.Join(words, ", ")
}

// conditionWords are the conditions that the node answers for, in the order of a pod's
// life, and what they are called here.
var conditionWords = []struct {
	kind v1.PodConditionType
	word string
}{
	{v1.PodScheduled, "scheduled"},
	{v1.PodReadyToStartContainers, "sandbox"},
	{v1.PodInitialized, "initialized"},
	{v1.ContainersReady, "containers"},
	{v1.PodReady, "ready"},
}

// conditions says +word for true and -word for false, and the reason if there is one.
func conditions(list []v1.PodCondition) string {
	var words []string
	for _, known := range conditionWords {
		for _, c := range list {
			if c.Type == known.kind {
				words = append(words, condition(c, known.word))
			}
		}
	}
	for _, c := range list {
		if !hasWord(c.Type) {
			words = append(words, condition(c, string(c.Type)))
		}
	}
	return strings.Join(words, " ")
}

func hasWord(kind v1.PodConditionType) bool {
	for _, known := range conditionWords {
		if known.kind == kind {
			return true
		}
	}
	return false
}

func condition(c v1.PodCondition, word string) string {
	sign := map[v1.ConditionStatus]string{v1.ConditionTrue: "+", v1.ConditionFalse: "-", v1.ConditionUnknown: "?"}[c.Status]
	if c.Reason == "" {
		return sign + word
	}
	return sign + word + "(" + c.Reason + ")"
}

func container(c *v1.ContainerStatus) string {
	words := []string{c.Name + ": " + containerState(c.State)}
	if c.Started != nil && *c.Started {
		words = append(words, "started")
	}
	if c.Ready {
		words = append(words, "ready")
	}
	if c.RestartCount > 0 {
		words = append(words, fmt.Sprintf("restarts %d", c.RestartCount))
	}
	if text := resources(c); text != "" {
		words = append(words, text)
	}
	if c.LastTerminationState != (v1.ContainerState{}) {
		words = append(words, "before: "+containerState(c.LastTerminationState))
	}
	return strings.Join(words, ", ")
}

// resources are what the container has, if it is more than nothing: requests and limits, and what it was promised.
func resources(c *v1.ContainerStatus) string {
	var words []string
	if c.Resources != nil {
		words = append(words, amounts("requests", c.Resources.Requests), amounts("limits", c.Resources.Limits))
	}
	words = append(words, amounts("allocated", c.AllocatedResources))
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), ", ")
}

func amounts(title string, list v1.ResourceList) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		text += fmt.Sprintf(" %s %s", name, quantity.String())
	}
	if text == "" {
		return ""
	}
	return title + text
}

func containerState(s v1.ContainerState) string {
	switch {
	case s.Waiting != nil:
		return strings.TrimSpace("waiting " + s.Waiting.Reason + " " + quote(s.Waiting.Message))
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		return strings.TrimSpace(fmt.Sprintf("exited %d %s %s", s.Terminated.ExitCode, s.Terminated.Reason, quote(s.Terminated.Message)))
	}
	return "no state"
}

func quote(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%q", text)
}
