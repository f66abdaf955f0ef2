package observer

import (
	"fmt"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/nodecondition"
	"github.com/statusd/statusd/observe"
)

// ConditionType is the condition of the Node: True while what the API says about it is true.
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
func truthful(report *observe.Report, pods int) v1.NodeCondition {
	c := v1.NodeCondition{Type: ConditionType}
	var first *observe.Difference
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

// newCondition makes what keeps the condition of the Node. It is removed at the end: what is no longer written must
// not go on saying that all is well.
func newCondition(client kubernetes.Interface, node string, log *slog.Logger) *nodecondition.Keeper {
	return nodecondition.New(nodecondition.Options{Client: client, Node: node, Logger: log, MessageDelay: conditionMessage, RemoveAtEnd: true})
}
