package service_test

import (
	"context"
	"fmt"

	"github.com/statusd/statusd/guard/service"
)

func Example() {
	ctx := context.Background()
	runtime, _ := service.NewChild(service.ChildOptions{Name: "runtime", Command: []string{"sleep", "60"}})
	kubelet, _ := service.NewChild(service.ChildOptions{Name: "kubelet", Command: []string{"sleep", "60"}})
	order := service.Order{Steps: []service.Step{
		{Service: runtime}, // with Ready: the CRI answers
		{Service: kubelet}, // with Ready: the node is registered and its lease renewed
	}}
	fmt.Println(order.Up(ctx))
	state, _ := kubelet.State(ctx)
	fmt.Println("exists:", state.Exists)
	fmt.Println(order.Down(ctx))
	state, _ = kubelet.State(ctx)
	fmt.Println("exists:", state.Exists, "ended by:", state.Signal)
	// Output:
	// <nil>
	// exists: true
	// <nil>
	// exists: false ended by: SIGTERM
}
