package explain

import "strings"

// complete gives each "to do" a command to copy.
func (f Facts) complete(e *Explanation) {
	var walk func([]Cause)
	walk = func(list []Cause) {
		for i := range list {
			c := &list[i]
			if c.Next != nil && c.Next.Do != "" && c.Next.Command == "" {
				c.Next.Command = f.command(c)
			}
			walk(c.Causes)
		}
	}
	walk(e.Causes)
	walk(e.Notes)
	if e.Delivery != nil {
		delivery := []Cause{*e.Delivery}
		walk(delivery)
		e.Delivery = &delivery[0]
	}
}

// command is what shows more about a cause.
func (f Facts) command(c *Cause) string {
	pod := "-n " + f.Pod.Namespace + " " + f.Pod.Name
	switch c.Code {
	case CodeExited, CodeContainersFailed, CodeCrashLoop, CodeReadinessProbeFailing, CodeReadinessProbePending, CodeStartupProbe, CodeLivenessKilled, CodeLivenessFailing, CodeInitRunning, CodeRestarts:
		command := "kubectl logs " + pod
		if c.Container != "" {
			command += " -c " + c.Container
		}
		if f.previous(c) {
			command += " --previous"
		}
		return command
	case CodeNodeShutdown, CodeNodeNotReady, CodeNodeLost, CodeDoesNotDie, CodeNotSeenByNode, CodeEvicted, CodeRejected:
		if f.Pod.Spec.NodeName != "" {
			return "kubectl describe node " + f.Pod.Spec.NodeName
		}
	case CodeNotScheduledYet:
		return "kubectl get pods -A -l component=kube-scheduler"
	case CodeConfig, CodeVolumesNotReady:
		return f.missing(c.Text)
	case CodeDeletionNotSent, CodeRetrying, CodeOffline:
		return "kubectl get --raw /readyz"
	case CodeFinalizers:
		return "kubectl get pod " + pod + " -o jsonpath='{.metadata.finalizers}'"
	case CodeReadinessGateMissing, CodeReadySetByOther, CodeSchedulingGated:
		return "kubectl get pod " + pod + " -o yaml --show-managed-fields"
	}
	return "kubectl describe pod " + pod
}

// previous reports whether what a cause is about is the run before the current one.
func (f Facts) previous(c *Cause) bool {
	switch c.Code {
	case CodeReadinessProbeFailing, CodeReadinessProbePending, CodeStartupProbe, CodeLivenessFailing, CodeInitRunning:
		return false
	}
	inits, regular := f.containers()
	for _, one := range append(inits, regular...) {
		if one.spec.Name == c.Container && one.status != nil {
			return one.status.State.Terminated == nil && one.status.LastTerminationState.Terminated != nil
		}
	}
	return false
}

// missing shows the object that a message names as missing.
func (f Facts) missing(message string) string {
	lower := strings.ToLower(message)
	for _, kind := range []string{"configmap", "secret", "persistentvolumeclaim"} {
		_, rest, ok := strings.Cut(lower, kind+" ")
		if !ok {
			continue
		}
		words := strings.Fields(rest)
		if len(words) == 0 {
			continue
		}
		name := strings.Trim(words[0], `"',.:;`)
		if _, short, ok := strings.Cut(name, "/"); ok { // in namespace/name
			name = short
		}
		if name != "" && !strings.ContainsAny(name, `"'$;|&<>()`) {
			return "kubectl get " + kind + " -n " + f.Pod.Namespace + " " + name
		}
	}
	return "kubectl describe pod -n " + f.Pod.Namespace + " " + f.Pod.Name
}
