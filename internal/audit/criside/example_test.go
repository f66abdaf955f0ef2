package criside_test

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit/criside"
)

// A runtime that does not answer is unknown, with the reason.
func ExampleSide() {
	ctx, cancel := context.WithCancel(context.Background())
	side, err := criside.New(criside.Options{
		Endpoint: "unix:///nonexistent/containerd.sock",
		Timeout:  time.Second,
		Changed:  func(types.UID) { cancel() },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := side.Run(ctx); err != nil {
		fmt.Println(err)
		return
	}
	answer := side.Facts().RuntimeAnswer
	fmt.Println(answer.Known(), answer.Err != "")
	// Output: false true
}
