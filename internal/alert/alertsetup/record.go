package alertsetup

import (
	"strings"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/history"
)

// Recorded is an action as the history of its pod, or of the node, has it.
func Recorded(alert alert.Alert, action alert.Action) (history.Ref, history.Record) {
	return history.Ref{UID: alert.UID, Namespace: alert.Namespace, Name: alert.Pod}, history.Record{
		Observed: action.At, Kind: history.KindAction, Subject: action.Action, Container: alert.Container, To: action.Result, Reason: alert.Rule,
		Message: strings.TrimPrefix(alert.Annotations["summary"]+": "+action.Message, ": "),
	}
}
