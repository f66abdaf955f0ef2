package explain

import (
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

// conditional replaces an explanation by what is certain if the node of the pod is silent: nothing that the node
// was about to do is.
func conditional(e *Explanation, f Facts) {
	if f.Pod.Spec.NodeName == "" || podstatus.IsTerminal(f.status().Phase) || f.Node.Silent.IsZero() && !f.Node.Gone {
		return
	}
	cause := nodeUnreachable(f)
	switch {
	case e.State == StateTerminating:
		cause.Text += ", so that its containers are not known to have stopped"
		if keep := finalizers(f); len(keep) > 0 {
			e.Causes, e.Notes, e.Next = append([]Cause{cause}, keep...), nil, nil
			return
		}
	case e.State == StateReady:
		e.State, e.Since = StateUnknown, known(f.Node.Silent)
		cause.Text += "; it was Ready then"
	case len(f.status().ContainerStatuses) > 0 && f.status().Phase != v1.PodUnknown:
		e.State, e.Since = StateUnknown, known(f.Node.Silent)
		if len(e.Causes) == 1 && (e.Causes[0].Code == CodeReadySetByOther || e.Causes[0].Code == CodeNodeNotReady) { // by the control plane, since the node is silent
			cause.Text += "; its containers were ready then"
			break
		}
		cause.Text += "; it was not Ready then"
		if before := briefs(e.Causes, false); before != "" {
			cause.Text += " (" + before + ")"
		}
	}
	e.Causes, e.Notes, e.Next = []Cause{cause}, nil, nil
}

func nodeUnreachable(f Facts) Cause {
	node := quote(f.Pod.Spec.NodeName)
	if f.Node.Gone {
		return Cause{Code: CodeNodeLost, Text: "node " + node + " is not in the API any more",
			Next: &Next{Do: "if its machine is gone for good, delete the pod", Command: "kubectl delete pod --force -n " + f.Pod.Namespace + " " + f.Pod.Name}}
	}
	return Cause{Code: CodeNodeUnreachable, Since: known(f.Node.Silent), Text: "node " + node + " has not been heard of" + since(f.Now, f.Node.Silent),
		Next: &Next{Do: "check the machine and its network", Command: "kubectl describe node " + f.Pod.Spec.NodeName}}
}

// nodeNotReady explains what a node keeps from running that is heard of.
func nodeNotReady(f Facts) Cause {
	next := &Next{Wait: "the node goes on when it is Ready", Do: remedyFor(f.Node.NotReady, []remedy{
		{[]string{"network", "cni"}, "install or repair the network plug-in of the node"},
		{[]string{"pleg", "container runtime is down", "runtime"}, "check the container runtime of the node"},
		{[]string{"shutting down", "shutdown"}, "wait until the node is back, or have the pod run on another node"},
	})}
	if next.Do == "" {
		next.Do = "make the node Ready"
	}
	return Cause{Code: CodeNodeNotReady, Text: "node " + quote(f.Pod.Spec.NodeName) + " is not Ready" + detail(f.Node.NotReady), Next: next}
}
