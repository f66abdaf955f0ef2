// Command play plays scenes of a stock node with statusd observe:
//
//	play -statusd FILE scenes -doc FILE        each scene, and the table of a document
//	play -statusd FILE churn -minutes N        pods that come and go, no alarm and no verdict
//	play -statusd FILE lies -doc FILE          lies and faults beside the scenes, and their table: make observe-lies
//	play -statusd FILE -seed N storm           lies and faults by seed, for some minutes: make robustness-observe
//	play -statusd FILE repair                  repairs while the kubelet is dead: make observe-repair
//	play -statusd FILE -kubelet FILE short     a few scenes with another kubelet: make observe-matrix
//	play -statusd FILE cost                    what statusd observe needs beside 100 pods: make footprint
//	play -statusd FILE demo                    a frozen kubelet: make observe-demo
//	play -statusd FILE guard                   a guarded kubelet that breaks in several ways: make guard-demo
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/scenes"
	"github.com/statusd/statusd/test/stock"
)

func main() { campaign.Main("play", run) }

type options struct {
	program, doc, only, from, kubelet string
	minutes                           int
	seed                              uint64
	stay                              bool
	cost                              costOptions
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("play", flag.ExitOnError)
	flags.StringVar(&o.program, "statusd", "bin/statusd", "the program")
	flags.StringVar(&o.doc, "doc", "", "the document to write the table of scenes into")
	flags.IntVar(&o.minutes, "minutes", 10, "how long pods come and go")
	flags.StringVar(&o.only, "only", "", "play only the scene or lie of that name")
	flags.Uint64Var(&o.seed, "seed", 1, "of the lies of a storm")
	flags.StringVar(&o.from, "from", "", "play the lie of that name and those after it; the document keeps the rows of the others")
	flags.StringVar(&o.kubelet, "kubelet", "", "a kubelet in the place of the one that is built")
	flags.BoolVar(&o.stay, "stay", false, "after the demonstration, leave everything running until Ctrl-C")
	o.cost.flags(flags)
	_ = flags.Parse(args) // ends the program itself
	actions := map[string]func(context.Context, options, *scenes.Stage) error{"scenes": playAll, "short": playShort, "lies": tellAll, "repair": repair, "churn": churn, "demo": demo, "cost": cost, "guard": guardDemo, "storm": storm}
	action, ok := actions[flags.Arg(0)]
	if !ok {
		return errors.New("usage: play [-statusd FILE] [-doc FILE] [-minutes N] scenes|short|lies|storm|repair|churn|demo|cost|guard")
	}
	if err := stock.Missing(); err != nil {
		return fmt.Errorf("no node of the stock kubelet on this machine:\n%w", err)
	}
	var err error
	if o.program, err = filepath.Abs(o.program); err != nil {
		return err
	}
	if o.kubelet != "" {
		if o.kubelet, err = filepath.Abs(o.kubelet); err != nil {
			return err
		}
	}
	fmt.Println("starting an API server, containerd, the stock kubelet and statusd observe")
	roles := []string{"../guard/rights.yaml"}
	if flags.Arg(0) == "repair" {
		roles = []string{"../repair/rights.yaml"}
	}
	stage, err := scenes.NewStage(ctx, scenes.StageOptions{Program: o.program, Kubelet: o.kubelet, Log: os.Stderr, Roles: roles})
	if err != nil {
		return err
	}
	err = action(ctx, o, stage)
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, stage.Node.Tail(10))
	}
	return errors.Join(err, stage.Close())
}

func playAll(ctx context.Context, o options, stage *scenes.Stage) error {
	return playScenes(ctx, o, stage, scenes.All(scenes.Times{APIDown: time.Minute, Churn: time.Duration(o.minutes) * time.Minute, Pods: 30}))
}

func playShort(ctx context.Context, o options, stage *scenes.Stage) error {
	node, err := stage.Node.Admin().CoreV1().Nodes().Get(ctx, stage.Node.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	info := node.Status.NodeInfo
	fmt.Println("kubelet", info.KubeletVersion, "with", info.ContainerRuntimeVersion)
	return playScenes(ctx, o, stage, scenes.Short())
}

func playScenes(ctx context.Context, o options, stage *scenes.Stage, all []scenes.Scene) error {
	var (
		results []scenes.Result
		wrong   error
	)
	for _, scene := range all {
		if o.only != "" && o.only != scene.Name {
			continue
		}
		fmt.Println("scene:", scene.Name)
		result, err := stage.Play(ctx, scene)
		results = append(results, result)
		if err != nil {
			return err
		}
		for _, w := range result.Wrong {
			fmt.Println("  wrong:", w)
			wrong = errors.New("not everything was as expected")
		}
	}
	return finish(o.doc, scenes.SceneMarks, scenes.Table(results), wrong)
}

// tellAll plays every lie.
func tellAll(ctx context.Context, o options, stage *scenes.Stage) error {
	from := o.from == ""
	var (
		all   []scenes.Telling
		wrong error
	)
	for _, lie := range scenes.Lies() {
		if from = from || lie.Name == o.from; !from || o.only != "" && o.only != lie.Name {
			continue
		}
		fmt.Println("lie:", lie.Name)
		t, err := stage.Tell(ctx, lie)
		all = append(all, t)
		if err != nil {
			fmt.Print("\n", scenes.LieTable(all, ""))
			return err
		}
		if t.Wrong != "" {
			fmt.Println("  wrong:", t.Wrong)
			wrong = errors.New("not everything was as expected")
		}
	}
	var before []byte
	if o.doc != "" {
		var err error
		if before, err = os.ReadFile(o.doc); err != nil {
			return err
		}
	}
	return finish(o.doc, scenes.LieMarks, scenes.LieTable(all, scenes.LieMarks.Table(string(before))), wrong)
}

func repair(ctx context.Context, _ options, stage *scenes.Stage) error {
	done, err := stage.Repair(ctx)
	for _, r := range done {
		fmt.Printf("%s repaired %v after the end of the kubelet: %s\n", r.Kind, r.After.Round(time.Second), r.What)
	}
	return err
}

// finish prints a table, and writes it into a document unless something was wrong.
func finish(doc string, marks campaign.Marks, table string, wrong error) error {
	fmt.Print("\n", table)
	if doc == "" || wrong != nil {
		return wrong
	}
	return marks.Write(doc, table)
}

// churn lets pods come and go beside an observer and a guard that runs the kubelet: neither may find anything wrong.
func churn(ctx context.Context, o options, stage *scenes.Stage) error {
	verdicts, err := watchVerdicts(ctx, stage)
	if err != nil {
		return err
	}
	scene := scenes.Churning(time.Duration(o.minutes)*time.Minute, 30)
	fmt.Println("scene:", scene.Name, "-", scene.What)
	result, err := play(ctx, stage, scene)
	costErr := costOfChurn(ctx, stage.Observer, verdicts.observer)
	wrong, guardErr := verdicts.end(ctx)
	for _, w := range wrong {
		err = errors.Join(err, errors.New(w))
	}
	fmt.Printf("false alarms in %d minutes: %d\n", o.minutes, len(result.Wrong))
	fmt.Printf("false verdicts in %d minutes: %d\n", o.minutes, len(wrong))
	return errors.Join(err, guardErr, costErr)
}

func play(ctx context.Context, stage *scenes.Stage, scene scenes.Scene) (scenes.Result, error) {
	result, err := stage.Play(ctx, scene)
	for _, wrong := range result.Wrong {
		err = errors.Join(err, errors.New(wrong))
	}
	return result, err
}
