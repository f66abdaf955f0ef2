package stock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// The ports of nodes are below those that the kernel chooses for programs that ask for any.
const firstPort, ports = 20000, 10000

// port is one of the loopback interface that is free, and that no other node of this machine takes
// until held is closed.
func port() (number int, held net.Listener, err error) {
	for range 100 {
		number = firstPort + rand.IntN(ports)
		// A name in the abstract namespace: it exists once on this machine, and goes with its process.
		held, err = net.Listen("unix", fmt.Sprintf("@statusd-stock-port-%d", number))
		if err != nil {
			continue
		}
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", number))
		if err == nil {
			return number, held, listener.Close()
		}
		held.Close()
	}
	return 0, nil, errors.Join(errors.New("found no free port"), err)
}
