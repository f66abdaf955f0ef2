package fit

import (
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// matchesNode reports whether the pod may run on the node by its node selector and its required
// node affinity.
func matchesNode(pod *v1.Pod, node *v1.Node) bool {
	if !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(node.Labels)) {
		return false
	}
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return slices.ContainsFunc(terms, func(term v1.NodeSelectorTerm) bool { return matchesTerm(&term, node) })
}

// matchesTerm reports whether all requirements of the term hold. A term without any matches nothing.
func matchesTerm(term *v1.NodeSelectorTerm, node *v1.Node) bool {
	if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
		return false
	}
	for _, r := range term.MatchExpressions {
		if !holds(r, labels.Set(node.Labels)) {
			return false
		}
	}
	for _, r := range term.MatchFields {
		if !holds(r, labels.Set{"metadata.name": node.Name}) {
			return false
		}
	}
	return true
}

func holds(r v1.NodeSelectorRequirement, set labels.Set) bool {
	value, has := set[r.Key]
	switch r.Operator {
	case v1.NodeSelectorOpIn:
		return has && slices.Contains(r.Values, value)
	case v1.NodeSelectorOpNotIn:
		return !has || !slices.Contains(r.Values, value)
	case v1.NodeSelectorOpExists:
		return has
	case v1.NodeSelectorOpDoesNotExist:
		return !has
	case v1.NodeSelectorOpGt, v1.NodeSelectorOpLt:
		return has && len(r.Values) == 1 && holdsNumber(r.Operator, value, r.Values[0])
	}
	return false
}

func holdsNumber(operator v1.NodeSelectorOperator, label, bound string) bool {
	have, err := strconv.ParseInt(label, 10, 64)
	if err != nil {
		return false
	}
	limit, err := strconv.ParseInt(bound, 10, 64)
	if err != nil {
		return false
	}
	if operator == v1.NodeSelectorOpGt {
		return have > limit
	}
	return have < limit
}

// toleratesAll checks the taints with the effect NoExecute. The other effects only keep pods from
// being scheduled; the node does not check them.
func toleratesAll(tolerations []v1.Toleration, taints []v1.Taint) bool {
	return !slices.ContainsFunc(taints, func(taint v1.Taint) bool {
		return taint.Effect == v1.TaintEffectNoExecute &&
			!slices.ContainsFunc(tolerations, func(t v1.Toleration) bool { return tolerates(&t, &taint) })
	})
}

func tolerates(t *v1.Toleration, taint *v1.Taint) bool {
	switch {
	case t.Effect != "" && t.Effect != taint.Effect:
		return false
	case t.Key != "" && t.Key != taint.Key:
		return false
	case t.Operator == v1.TolerationOpExists:
		return true
	case t.Operator == "", t.Operator == v1.TolerationOpEqual:
		return t.Key != "" && t.Value == taint.Value
	}
	return false
}
