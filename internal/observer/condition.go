package observer

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/nodecondition"
)

// ConditionType is the condition of the Node: True while the API's report about the node is true.
const ConditionType v1.NodeConditionType = "StatusTruthful"

// The reasons of the condition.
const (
	conditionTrue    = "NoDrift"
	conditionFalse   = "Drift"
	conditionUnknown = "SideSilent"
)

// conditionMessage is how often the condition is written though only its message changes.
const conditionMessage = 30 * time.Second

// truthful is the condition that an audit amounts to. Pure function.
func truthful(report *audit.Report, pods int) v1.NodeCondition {
	c := v1.NodeCondition{Type: ConditionType}
	var first *audit.Difference
	drift, affected := 0, map[types.UID]bool{}
	for i := range report.Differences {
		if d := &report.Differences[i]; d.Drift {
			drift++
			affected[d.Pod.UID] = true
			if first == nil {
				first = d
			}
		}
	}
	if first != nil {
		delete(affected, "")
		c.Status, c.Reason = v1.ConditionFalse, conditionFalse
		c.Message = fmt.Sprintf("%d differences that last, of %d of %d pods; the first: %s", drift, len(affected), pods, first.Message)
		return c
	}
	for _, side := range sideOrder {
		if answer := report.Sides[side]; !answer.Known() {
			c.Status, c.Reason = v1.ConditionUnknown, conditionUnknown
			c.Message = fmt.Sprintf("%s does not answer: %s", sideNames[side], answer.Err)
			return c
		}
	}
	c.Status, c.Reason, c.Message = v1.ConditionTrue, conditionTrue, "what the API says about the pods of this node is true"
	return c
}

// conditionTerms define how the condition of the Node is maintained. It is removed at the end: a condition that is
// no longer updated must not keep reporting a healthy node.
var conditionTerms = nodecondition.Terms{MessageDelay: conditionMessage, RemoveAtEnd: true}
