package resources_test

import (
	"fmt"

	"github.com/statusd/statusd/guard/resources"
)

func ExampleReader_Read() {
	reader, err := resources.New(resources.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	load := reader.Read()
	fmt.Println(load.CPU.Cores > 0, load.Memory.Total > load.Memory.Available, load.Limit != "")
	// Output: true true true
}
