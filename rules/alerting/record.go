package alerting

import (
	"strings"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/history"
)

// Recorded is an action as the history of its pod, or of the node, has it.
func Recorded(alert api.Alert, action api.AlertAction) (history.Ref, history.Record) {
	return history.Ref{UID: alert.UID, Namespace: alert.Namespace, Name: alert.Pod}, history.Record{
		Observed: action.At, Kind: history.KindAction, Subject: action.Action, Container: alert.Container, To: action.Result, Reason: alert.Rule,
		Message: strings.TrimPrefix(alert.Annotations["summary"]+": "+action.Message, ": "),
	}
}
