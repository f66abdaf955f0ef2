// Command teeth shows that the campaign finds what it looks for: it breaks the manager in one place, runs the campaign until a round
// with a violation, for at most 5 minutes, and goes on with the next place.
//
//	make robustness-teeth            all of teeth.txt
//	make robustness-teeth TEETH=webhook    those whose description matches
//
// The tree is left alone: the changed file reaches the compiler as an overlay.
//
// Faults of other parts than the manager are found by another campaign: a command ("with"), whose environment has the changed program statusd
// (STATUSD), the seed (SEED), and the overlay for the Go tool (GOFLAGS). The command must fail with a line that matches "tests".
package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/mutants/mutant"
)

//go:embed teeth.txt
var list string

func main() { campaign.Main("teeth", run) }

type options struct {
	duration  time.Duration
	seed      uint64
	toxiproxy string
	dir       string // of what is built, and of the campaigns
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("teeth", flag.ContinueOnError)
	flags.DurationVar(&o.duration, "duration", 5*time.Minute, "how long each campaign lasts at most")
	flags.Uint64Var(&o.seed, "seed", 1, "of the campaigns")
	flags.StringVar(&o.toxiproxy, "toxiproxy", "bin/toxiproxy", "binary")
	flags.StringVar(&o.dir, "dir", "build/teeth", "directory for the campaigns")
	only := flags.String("only", ".", "faults whose description matches this expression")
	parallel := flags.Int("p", 1, "how many campaigns run at the same time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	expression, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	teeth, err := mutant.Parse(list, "invariant", "tests")
	if err != nil {
		return fmt.Errorf("teeth.txt: %w", err)
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, *parallel)
	var mu sync.Mutex // guards survivors
	survivors := 0
	for n, m := range teeth {
		if !expression.MatchString(m.Without) {
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			text, found := o.try(ctx, n, m)
			fmt.Fprintf(campaign.Out, "%-50s %s\n", m.Without, text)
			if !found {
				mu.Lock()
				survivors++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if survivors > 0 {
		return fmt.Errorf("%d faults were not found", survivors)
	}
	return ctx.Err()
}

// try runs the campaign with the fault.
func (o options) try(ctx context.Context, n int, m mutant.Mutant) (text string, found bool) {
	dir, err := filepath.Abs(filepath.Join(o.dir, strconv.Itoa(n)))
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	target := "./test/robustness"
	if m.With != "" {
		target = "./cmd/statusd"
	}
	if err == nil {
		err = build(ctx, dir, m, target)
	}
	if err != nil {
		return err.Error(), false
	}
	if m.With != "" {
		return o.with(ctx, dir, m)
	}
	began := time.Now()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "robustness"), "-until-violation", "-duration", o.duration.String(), "-seed", strconv.FormatUint(o.seed, 10),
		"-faults", m.Tests, "-state", filepath.Join(dir, "state"), "-toxiproxy", o.toxiproxy)
	output, err := cmd.CombinedOutput()
	took := time.Since(began).Round(time.Second)
	if err := os.WriteFile(filepath.Join(dir, "output"), output, 0o644); err != nil {
		return err.Error(), false
	}
	if err == nil {
		return fmt.Sprintf("NOT FOUND in %s", took), false
	}
	var broken []string
	for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
		if violated := violation.FindStringSubmatch(lines.Text()); violated != nil {
			broken = append(broken, violated[1])
		}
	}
	if len(broken) == 0 {
		return fmt.Sprintf("no campaign: %v, see %s", err, dir), false
	}
	return fmt.Sprintf("%4s  %s", took, broken[0]), true
}

// violation is a line about one.
var violation = regexp.MustCompile(`^\d\d:\d\d:\d\d\.\d{3}  (.*)`)

// with runs another campaign with the fault.
func (o options) with(ctx context.Context, dir string, m mutant.Mutant) (text string, found bool) {
	expression, err := regexp.Compile(m.Tests)
	if err != nil {
		return err.Error(), false
	}
	began := time.Now()
	cmd := exec.CommandContext(ctx, "sh", "-c", m.With)
	cmd.Env = append(os.Environ(), "GOFLAGS=-overlay="+filepath.Join(dir, "overlay.json"), "STATUSD="+filepath.Join(dir, "statusd"), "SEED="+strconv.FormatUint(o.seed, 10))
	output, failed := cmd.CombinedOutput()
	took := time.Since(began).Round(time.Second)
	if err := os.WriteFile(filepath.Join(dir, "output"), output, 0o644); err != nil {
		return err.Error(), false
	}
	if failed == nil {
		return fmt.Sprintf("NOT FOUND in %s", took), false
	}
	for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
		if expression.MatchString(lines.Text()) {
			return fmt.Sprintf("%4s  %s", took, strings.TrimSpace(lines.Text())), true
		}
	}
	return fmt.Sprintf("no campaign: %v, see %s", failed, dir), false
}

func build(ctx context.Context, dir string, m mutant.Mutant, target string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	changed, err := m.Apply(root)
	if err != nil {
		return err
	}
	file, overlay := filepath.Join(dir, "changed.txt"), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.File): file}})
	if err = errors.Join(err, os.WriteFile(file, changed, 0o644), os.WriteFile(overlay, text, 0o644)); err != nil {
		return err
	}
	output, err := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", filepath.Join(dir, filepath.Base(target)), target).CombinedOutput()
	if err != nil {
		return fmt.Errorf("does not compile: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}
