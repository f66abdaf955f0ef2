package apiside_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/audit/apiside"
)

// A server that cannot be reached is unknown, with the reason.
func ExampleSide() {
	ctx, cancel := context.WithCancel(context.Background())
	side, err := apiside.New(apiside.Options{
		Config:  &rest.Config{Host: "http://127.0.0.1:1"}, // no server listens there
		Node:    "n1",
		Changed: func(types.UID) { cancel() },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := side.Run(ctx); err != nil {
		fmt.Println(err)
		return
	}
	facts := side.Facts()
	fmt.Println(facts.APIAnswer.Known(), facts.APIAnswer.Err != "", facts.APIPods == nil)
	// Output: false true true
}
