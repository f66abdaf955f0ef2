package notify_test

import (
	"fmt"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/guard/notify"
)

func ExampleEvents() {
	events := notify.Events{Record: func(eventType, reason, message string) { fmt.Println(eventType, reason, message) }}
	events.Notify(guard.Notice{Kind: guard.NoticeHealthy, Message: "the kubelet does its work"})
	// Output: Normal KubeletHealthy the kubelet does its work
}
