// Package notify brings what a guard notices to where operators look: a condition of the Node, Events, a
// webhook. They work while the kubelet is dead, with a credential of their own or the node's.
//
//	condition := notify.NewCondition(client, "node-1", logger)
//	events := notify.NewEvents(client, "node-1", logger)
//	webhook, err := notify.NewWebhook(notify.WebhookOptions{URL: "https://alerts.example/kubelet", Node: "node-1"})
//	go condition.Run(ctx) // and the others
//	guard.New(guard.Options{Outputs: []guard.Output{condition, events, webhook}, ...})
//
// Notify never blocks. What waits is bounded: the condition keeps its newest version only, events and
// webhook drop what is too much and count it.
package notify
