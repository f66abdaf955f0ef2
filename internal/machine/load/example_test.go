package load_test

import (
	"fmt"

	"github.com/statusd/statusd/internal/machine/load"
)

func ExampleReader_Read() {
	reader, err := load.New(load.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	load := reader.Read()
	fmt.Println(load.CPU.Cores > 0, load.Memory.Total > load.Memory.Available, load.Limit != "")
	// Output: true true true
}
