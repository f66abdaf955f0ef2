// Command compare runs the stock kubelet and the kubelet with statusd's manager, and with -kubelets stock,run also statusd run instead of a kubelet,
// with real containers, one after the other in each setting, and prints the usage of each. It needs root, containerd and runc.
//
//	compare starts  many pods at once: how long until each is seen Ready, how long until a pod that loses readiness meanwhile is
//	                seen unready, how many requests a pod's life needs, how long until all are gone
//	compare density the same without containers, of kubelets whose runtime only pretends to run them: also CPU and memory
//	compare turns   both kubelets take turns on one node, with running pods and a journal that is old, damaged or cannot be written:
//	                what the API says of the pods must stay the same
//	compare twins   two kubelets of one name: how many requests they make, and how soon the API is right when one of them ends
//	compare ends    pods end while the API server is down, and the kubelet is killed: what it reports afterwards
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/controlplane"
	"github.com/statusd/statusd/test/stock"
)

// agent is a kubelet, or statusd run in its place.
type agent struct{ name, program, hollow string }

// isStatusd reports whether the agent is statusd run.
func (a agent) isStatusd() bool { return a.name == "run" }

func main() { campaign.Main("compare", run) }

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: compare starts|density|turns|twins|ends [flags]")
	}
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	build := flags.String("build", "build", "the directory with the kubelets, and for density with kubemark-1.36.3 and kubemark-statusd-1.36.3")
	sizes := flags.String("pods", "30,60,100", "starts, density: how many pods at once; ends: how many of each kind, the first number")
	limits := flags.String("limits", "default,none,rtt50", "starts, density: the settings: default limits of the client, none, none with 50 ms more for each request, or those before Kubernetes 1.27")
	only := flags.String("kubelets", "stock,statusd", "which ones: stock, statusd, run")
	log := flags.String("log", "", "starts, density: a file for each request about a pod, with its time and body")
	_ = flags.Parse(args[1:]) // ends the program itself
	if *log != "" {
		file, err := os.Create(*log)
		if err != nil {
			return err
		}
		defer file.Close()
		requestLog = file
	}
	var counts []int
	for _, text := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		counts = append(counts, n)
	}
	var agents []agent
	for _, a := range []agent{{"stock", "kubelet-1.36.3", "kubemark-1.36.3"}, {"statusd", "kubelet-statusd-1.36.3", "kubemark-statusd-1.36.3"}, {"run", "../bin/statusd", ""}} {
		if !slices.Contains(strings.Split(*only, ","), a.name) {
			continue
		}
		top, err := filepath.Abs(*build)
		if err != nil {
			return err
		}
		agents = append(agents, agent{a.name, filepath.Join(top, a.program), filepath.Join(top, a.hollow)})
	}
	if args[0] != "density" {
		if err := stock.Missing(); err != nil {
			return err
		}
	}
	switch args[0] {
	case "starts":
		return compareAll(ctx, startsHead, agents, strings.Split(*limits, ","), counts, measureStarts)
	case "density":
		return compareAll(ctx, densityHead, agents, strings.Split(*limits, ","), counts, measureDensity)
	case "turns":
		return compareTurns(ctx, agents)
	case "twins":
		return compareTwins(ctx, agents)
	case "ends":
		return compareEnds(ctx, agents, counts[0])
	}
	return fmt.Errorf("there is no comparison %q", args[0])
}

// startNode runs a node of the kubelet on an API server, through the proxy if there is one.
func (a agent) startNode(ctx context.Context, api *controlplane.Process, name, kubeconfig, settings string) (*stock.Node, error) {
	options := stock.Options{Name: name, API: api, Program: a.program, Kubeconfig: kubeconfig, Settings: settings, Log: campaign.Out}
	if a.isStatusd() { // the settings are a kubelet's: it has its default limits, which are the same
		options.Statusd = a.program
	}
	return stock.Run(ctx, options)
}
