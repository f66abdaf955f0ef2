// Package notify makes of what a guard notices a condition of the Node and Events, by the senders of the process: they work
// while the kubelet is dead. Webhooks and Alertmanager get it by the rules KubeletUnhealthy and KubeletRestartWithheld.
//
//	outputs := []guard.Output{
//		notify.Condition{Keeper: keeper.Owner(notify.Terms)},
//		notify.Events{Record: events.NodeEvent},
//	}
//
// Notify never blocks.
package notify
