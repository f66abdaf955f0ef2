package apiside_test

import (
	"context"
	"fmt"
	"net"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/observe/apiside"
)

// A server that cannot be reached is unknown, with the reason.
func ExampleSide() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	listener.Close() // no server listens there

	ctx, cancel := context.WithCancel(context.Background())
	side, err := apiside.New(apiside.Options{
		Config:  &rest.Config{Host: "http://" + listener.Addr().String()},
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
