// Command compare runs the stock kubelet and the one with statusd's manager with real containers, one after the other in each
// setting, and prints what each needed. It needs root, containerd and runc.
//
//	compare starts  many pods at once: how long until each is seen Ready, how long until a pod that loses readiness meanwhile is
//	                seen unready, how many requests a pod's life needs, how long until all are gone
//	compare ends    pods end while the API server is down, and the kubelet is killed: what it reports afterwards
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/controlplane"
	"github.com/statusd/statusd/test/stock"
)

// agent is a kubelet.
type agent struct{ name, program string }

func main() { campaign.Main("compare", run) }

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: compare starts|ends [flags]")
	}
	if err := stock.Missing(); err != nil {
		return err
	}
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	build := flags.String("build", "build", "the directory with kubelet-1.36.3 and kubelet-statusd-1.36.3")
	sizes := flags.String("pods", "30,60,100", "starts: how many pods at once; ends: how many of each kind, the first number")
	limits := flags.String("limits", "default,none,rtt50", "starts: the settings: default limits of the client, none, or none with 50 ms more for each request")
	only := flags.String("kubelets", "stock,statusd", "which ones")
	_ = flags.Parse(args[1:]) // ends the program itself
	var counts []int
	for _, text := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		counts = append(counts, n)
	}
	var agents []agent
	for _, a := range []agent{{"stock", "kubelet-1.36.3"}, {"statusd", "kubelet-statusd-1.36.3"}} {
		if !slices.Contains(strings.Split(*only, ","), a.name) {
			continue
		}
		program, err := filepath.Abs(filepath.Join(*build, a.program))
		if err != nil {
			return err
		}
		agents = append(agents, agent{a.name, program})
	}
	switch args[0] {
	case "starts":
		return compareStarts(ctx, agents, strings.Split(*limits, ","), counts)
	case "ends":
		return compareEnds(ctx, agents, counts[0])
	}
	return fmt.Errorf("there is no comparison %q", args[0])
}

// startNode runs a node of the kubelet on an API server, through the proxy if there is one.
func (a agent) startNode(ctx context.Context, api *controlplane.Process, name, kubeconfig, settings string) (*stock.Node, error) {
	return stock.Run(ctx, stock.Options{
		Name: name, API: api, Program: a.program, Kubeconfig: kubeconfig, Settings: settings, Log: campaign.Out,
	})
}
