package kubeoutputs_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/rules"
	"github.com/statusd/statusd/rules/kubeoutputs"
)

func ExampleEvents() {
	events := kubeoutputs.NewEvents("node-1", func(about v1.ObjectReference, eventType, reason, message string) {
		fmt.Println(about.Kind, about.Name, eventType, reason, message)
	})
	events.Notify(rules.Notification{Alert: api.Alert{
		Rule: "PodCrashLooping", Severity: "warning", State: api.AlertFiring, Namespace: "default", Pod: "web",
		Annotations: map[string]string{"summary": "restarted 5 times in 10m"},
	}})
	// Output: Pod web Warning AlertFiring PodCrashLooping (warning): restarted 5 times in 10m
}
