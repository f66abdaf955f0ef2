package kubeoutputs_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/internal/alert/kubeoutputs"
)

func ExampleEvents() {
	events := kubeoutputs.NewEvents("node-1", func(about v1.ObjectReference, eventType, reason, message string) {
		fmt.Println(about.Kind, about.Name, eventType, reason, message)
	})
	events.Notify(engine.Notification{Alert: alert.Alert{
		Rule: "PodCrashLooping", Severity: "warning", State: alert.Firing, Namespace: "default", Pod: "web",
		Annotations: map[string]string{"summary": "restarted 5 times in 10m"},
	}})
	// Output: Pod web Warning AlertFiring PodCrashLooping (warning): restarted 5 times in 10m
}
