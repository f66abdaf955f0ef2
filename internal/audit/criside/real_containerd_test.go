//go:build real

package criside

import (
	"sync"
	"testing"

	"github.com/statusd/statusd/test/stock"
)

// realContainerd is Debian's containerd as a runtime that can be disturbed.
type realContainerd struct {
	t *testing.T
	*stock.Containerd
}

func (c realContainerd) Endpoint() string { return "unix://" + c.Socket() }

func (c realContainerd) Start() {
	c.t.Helper()
	if err := c.Containerd.Start(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
}

func (c realContainerd) Kill() { c.Process().Kill() }

func (c realContainerd) Freeze() {
	c.t.Helper()
	if err := c.Process().Pause(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(c.Thaw) // a stopped process would keep the test from removing its containers
}

func (c realContainerd) Thaw() { c.Process().Resume() }

func TestRealContainerd(t *testing.T) {
	var shared *stock.Containerd
	start := sync.OnceFunc(func() { shared = stock.StartContainerd(t) })
	runtimeCases(t, func(sub *testing.T) control {
		start()
		return realContainerd{sub, shared}
	})
}
