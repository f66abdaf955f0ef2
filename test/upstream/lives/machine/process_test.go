package machine

import (
	"os"
	"slices"
	"testing"
)

func TestALossOfPowerSparesTheServerAndItsChildren(t *testing.T) {
	self := os.Getpid()
	const server, helper, agent, shim, container = 1 << 23, 1<<23 + 1, 1<<23 + 2, 1<<23 + 3, 1<<23 + 4 // larger than any real one
	all := map[int]stat{
		1:         {1, 0},
		self:      {self, 1},
		server:    {server, self},
		helper:    {helper, server},
		agent:     {agent, self},
		shim:      {shim, 1},
		container: {container, shim},
	}
	got := victims(all, []int{server})
	slices.Sort(got)
	if want := []int{agent, shim, container}; !slices.Equal(got, want) {
		t.Errorf("killed are %v, want %v", got, want)
	}
}

func TestThisProcessIsAmongTheProcesses(t *testing.T) {
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	if got := all[os.Getpid()]; got.parent != os.Getppid() {
		t.Errorf("the parent of this process is %d, want %d", got.parent, os.Getppid())
	}
}
