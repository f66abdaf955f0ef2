package process

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/runtimetest"
	"github.com/statusd/statusd/test/orphans"
)

// programs are what containers of tests run, by the first argument of this very program.
var programs = map[string]func(arguments []string) int{}

func TestMain(m *testing.M) {
	if IsShim() {
		os.Exit(ShimMain())
	}
	if len(os.Args) > 1 && os.Args[1] == agentArgument {
		os.Exit(agentMain(os.Args[2], os.Args[3:]))
	}
	if len(os.Args) > 4 && os.Args[1] == execArgument {
		os.Exit(execMain(os.Args[2], os.Args[3], os.Args[4]))
	}
	if len(os.Args) > 1 && os.Args[1] == removeArgument {
		os.Exit(removeMain(os.Args[2]))
	}
	if len(os.Args) > 1 && os.Args[1] == killArgument {
		os.Exit(killMain(os.Args[2]))
	}
	if len(os.Args) > 1 && os.Args[1] == stepsArgument {
		os.Exit(stepsMain(os.Args[2]))
	}
	if len(os.Args) > 1 && programs[os.Args[1]] != nil {
		os.Exit(programs[os.Args[1]](os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	runtimetest.Run(t, runtimetest.Config{Image: Image, Open: func(t *testing.T, dir string) (runtime.Runtime, func()) {
		return open(t, Options{Dir: dir})
	}})
}

// open opens a runtime and runs it until it is closed.
func open(t *testing.T, options Options) (*Runtime, func()) {
	t.Helper()
	options.NodeIPs = []string{"192.0.2.1", "2001:db8::1"}
	orphans.EndBelow(t, options.Dir)
	rt, err := New(options)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- rt.Run(ctx) }()
	return rt, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		if err := rt.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}
