package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/statusd/statusd/internal/image"
	"github.com/statusd/statusd/test/child"
	"github.com/statusd/statusd/test/controlplane"
	"github.com/statusd/statusd/test/e2e/images"
	"github.com/statusd/statusd/test/progress"
	"github.com/statusd/statusd/test/stock"
)

// settings are the kubelet's, of every agent that is one.
const settings = `clusterDNS: [10.0.0.10]
clusterDomain: cluster.local
registryPullQPS: 0
`

// inside runs the specs in the namespaces of this process.
func inside(ctx context.Context, o options) (err error) {
	line := progress.On(os.Stderr)
	defer line.Close()
	if err := prepareNamespaces(ctx); err != nil {
		return err
	}
	line.Set("starting the control plane")
	api, err := controlplane.Start(ctx, controlplane.Options{DataDir: filepath.Join(os.TempDir(), "api"), Controllers: true, Log: line})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.Kill()) }()
	node, err := startNode(ctx, o, api, line)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, saveLogs(o, node, api), node.Close()) }()
	return runSpecs(ctx, o, api.AdminKubeconfig(), line)
}

// startNode starts a node of the agent and gives it the images.
func startNode(ctx context.Context, o options, api *controlplane.Process, line *progress.Line) (*stock.Node, error) {
	program, err := agentProgram(o.agent)
	if err != nil {
		return nil, err
	}
	if program, err = filepath.Abs(program); err != nil {
		return nil, err
	}
	line.Set("starting a node of agent %s", o.agent)
	options := stock.Options{
		Name: "e2e-node", API: api, Settings: settings, Log: line,
		Network: &stock.Network{Config: podNetwork, Plugins: plugins, Address: nodeAddress, Port: nodePort},
	}
	if o.agent == "statusd" {
		options.Statusd = program
	} else {
		options.Program = program
	}
	node, err := stock.Run(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := loadImages(ctx, node, line); err != nil {
		return nil, errors.Join(err, node.Close())
	}
	return node, nil
}

func loadImages(ctx context.Context, node *stock.Node, line *progress.Line) error {
	certificates, err := inSuite(ctx, "list", "-f", "{{.Dir}}", "k8s.io/kubernetes/test/images/agnhost/porter")
	if err != nil {
		return err
	}
	all, err := images.All(images.Sources{
		Agnhost: filepath.Join(results, "agnhost"), Certificates: certificates, NNP: filepath.Join(results, "nnp"),
	})
	if err != nil {
		return err
	}
	for n, i := range all {
		line.Set("making image %d of %d", n+1, len(all))
		var archive bytes.Buffer
		if err := image.Write(&archive, i); err != nil {
			return err
		}
		file := filepath.Join(node.Dir(), "image.tar")
		if err := os.WriteFile(file, archive.Bytes(), 0o644); err != nil {
			return err
		}
		if err := node.Containerd.LoadImage(ctx, file); err != nil {
			return err
		}
	}
	return nil
}

// saveLogs copies the logs of node and control plane to the results.
func saveLogs(o options, node *stock.Node, api *controlplane.Process) error {
	files, err := filepath.Glob(filepath.Join(node.Dir(), "*.log"))
	errs := []error{err}
	for _, file := range append(files, filepath.Join(api.DataDir(), "controlplane.log")) {
		content, err := os.ReadFile(file)
		errs = append(errs, err, os.WriteFile(filepath.Join(results, o.agent, filepath.Base(file)), content, 0o644))
	}
	return errors.Join(errs...)
}

// runSpecs runs the specs that are selected. Failed specs are no error: the report has them.
func runSpecs(ctx context.Context, o options, kubeconfig string, line *progress.Line) error {
	top, err := filepath.Abs(results)
	if err != nil {
		return err
	}
	dir := filepath.Join(top, o.agent)
	log, err := os.Create(filepath.Join(dir, "specs.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	seen := newCounter(line)
	cmd := exec.Command(filepath.Join(top, "ginkgo"), "--procs", strconv.Itoa(o.procs), "--focus", o.focus, "--skip", o.skip, "--timeout", "6h",
		"--no-color", "--silence-skips", "--output-dir", dir, "--json-report", "report.json", "--junit-report", "junit.xml",
		filepath.Join(top, "e2e.test"), "--",
		"--kubeconfig", kubeconfig, "--provider", "skeleton", "--num-nodes", "1", "--disable-log-dump")
	cmd.Stdout = io.MultiWriter(log, seen)
	cmd.Stderr = cmd.Stdout
	process, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return err
	}
	tick := time.NewTicker(time.Second) // the line shows that the run goes on
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			process.Kill()
			return context.Cause(ctx)
		case <-process.Exited:
			if _, err := os.Stat(filepath.Join(dir, "report.json")); err != nil {
				return fmt.Errorf("ginkgo made no report, see %s: %w", log.Name(), process.Err())
			}
			return nil
		case <-tick.C:
			seen.show()
		}
	}
}

// counter counts specs in what ginkgo writes: a bullet for each that has run.
type counter struct {
	line  *progress.Line
	began time.Time

	mu                 sync.Mutex // guards what follows
	rest               string     // an incomplete line
	total, ran, failed int
}

func newCounter(line *progress.Line) *counter { return &counter{line: line, began: time.Now()} }

var selected = regexp.MustCompile(`^Will run (\d+) of \d+ specs`)

// Write takes what ginkgo writes. Bullets of passed specs stand in one line, which grows.
func (c *counter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ran += bytes.Count(p, []byte("•"))
	c.rest += string(p)
	for {
		l, rest, complete := strings.Cut(c.rest, "\n")
		if !complete {
			return len(p), nil
		}
		c.rest = rest
		if found := selected.FindStringSubmatch(l); found != nil {
			c.total, _ = strconv.Atoi(found[1]) // digits
		}
		if strings.Contains(l, "• [FAILED]") || strings.Contains(l, "• [PANICKED]") || strings.Contains(l, "• [TIMEDOUT]") {
			c.failed++
		}
	}
}

func (c *counter) show() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line.Set("%d of %d specs have run, %d failed, %s", c.ran, c.total, c.failed, time.Since(c.began).Round(time.Second))
}
