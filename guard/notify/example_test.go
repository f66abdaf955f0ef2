package notify_test

import (
	"fmt"

	"github.com/statusd/statusd/guard/notify"
)

func ExampleNewWebhook() {
	_, err := notify.NewWebhook(notify.WebhookOptions{URL: "alerts.example/kubelet", Node: "node-1"})
	fmt.Println(err)
	// Output: notify: webhook "alerts.example/kubelet" is no http or https URL
}
