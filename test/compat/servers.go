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
	"slices"
	"strconv"

	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/test/controlplane"
	"github.com/statusd/statusd/test/controlplane/binary"
)

// serverResult is how statusd is with an API server of a version.
type serverResult struct {
	Version        string
	Fields         fieldsResult
	Node           nodeResult
	Passed, Failed int // real tests
	Skipped        int
	Failures       []string
}

// ours is the version of test/controlplane/server.
const ours = "1.36.3"

// tested are the packages whose real tests speak with the API server: the library, the kits and both daemons.
var tested = []string{"./status", "./journal/...", "./explain/...", "./node/...", "./agent/...", "./kubeletapi/...", "./virtualkubelet/...", "./cmd/...",
	"./internal/run/...", "./internal/doctor/...", "./internal/certs/..."}

func servers(ctx context.Context, versions []string, short bool) error {
	var wrong error
	for _, version := range versions {
		fmt.Printf("== API server %s\n", version)
		result, err := server(ctx, version, short)
		if result != nil {
			err = errors.Join(err, keep("server", version, result))
		}
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("API server %s: %w", version, err))
		}
	}
	all, err := kept[serverResult]("server")
	if err != nil {
		return errors.Join(wrong, err)
	}
	table := serverTable(all)
	fmt.Print("\n", table)
	return errors.Join(wrong, serverMarks.Write(document, table))
}

// server tries a version. It has a result once the server has run.
func server(ctx context.Context, version string, short bool) (*serverResult, error) {
	program, err := controlPlane(ctx, version)
	if err != nil {
		return nil, err
	}
	if err := os.Setenv(binary.Variable, program); err != nil {
		return nil, err
	}
	result := &serverResult{Version: version}
	if err := result.probe(ctx); err != nil {
		return nil, err
	}
	if short {
		return result, nil
	}
	return result, result.test(ctx)
}

// controlPlane builds the control plane of a version.
func controlPlane(ctx context.Context, version string) (string, error) {
	if version == ours {
		if err := os.Unsetenv(binary.Variable); err != nil {
			return "", err
		}
		return controlplane.Build(ctx, os.Stdout)
	}
	program, err := filepath.Abs("build/controlplane-" + version)
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "test/controlplane/version.sh", version, program)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return program, command.Run()
}

// probe starts a server, and reports to it as the library and as a node.
func (r *serverResult) probe(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "statusd-compat-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // containers of other users pass through
		return err
	}
	process, err := controlplane.Start(ctx, controlplane.Options{DataDir: filepath.Join(dir, "controlplane"), Log: os.Stdout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.Kill()) }()
	admin, err := kubernetes.NewForConfig(process.AdminConfig())
	if err != nil {
		return err
	}
	if r.Fields, err = tryFields(ctx, process, admin); err != nil {
		return err
	}
	r.Node, err = tryNode(ctx, process, admin, dir)
	return err
}

var (
	numbers  = regexp.MustCompile(`(\d+) passed, (\d+) failed, (\d+) skipped`)
	failures = regexp.MustCompile(`(?s)\nfailed:\n(.*?)\n\n`)
)

// test runs the real tests. Tests that fail are a result, not an error.
func (r *serverResult) test(ctx context.Context) error {
	var out bytes.Buffer
	command := exec.CommandContext(ctx, "go", append([]string{"run", "./test/tier", "real", "-timeout", "40m"}, tested...)...)
	command.Stdout, command.Stderr = io.MultiWriter(os.Stdout, &out), os.Stderr
	runErr := command.Run()
	found := numbers.FindSubmatch(out.Bytes())
	if found == nil {
		return errors.Join(runErr, errors.New("the real tests did not end"))
	}
	for i, number := range []*int{&r.Passed, &r.Failed, &r.Skipped} {
		*number, _ = strconv.Atoi(string(found[i+1])) // digits
	}
	if found := failures.FindSubmatch(out.Bytes()); found != nil {
		for line := range bytes.Lines(found[1]) {
			r.Failures = append(r.Failures, string(bytes.TrimSpace(line)))
		}
		slices.Sort(r.Failures)
	}
	return nil
}

func serverTable(all []serverResult) string {
	head, rule := []string{"API server"}, "|---"
	lines := [][]string{{"real tests that pass"}, {"real tests that fail"}, {"fields that the server does not store"}, {"fields that the server refuses"},
		{fmt.Sprintf("requests for a status with all fields in %s, one report in %s", probed, reported)}, {"fights"},
		{"pods of `statusd run` as they should be"}, {fmt.Sprintf("writes of statuses of these pods in %s without a change", probed)}}
	for _, r := range all {
		head, rule = append(head, r.Version), rule+"|---"
		passed, failures := strconv.Itoa(r.Passed), names(r.Failures)
		if r.Passed+r.Failed == 0 { // -short
			passed, failures = "not run", "not run"
		}
		for i, cell := range []string{passed, failures, names(r.Fields.Dropped), names(r.Fields.Refused), strconv.Itoa(int(r.Fields.Requests)),
			strconv.Itoa(r.Fields.Fights), fmt.Sprintf("%d of %d", r.Node.Right, r.Node.Pods), strconv.Itoa(r.Node.Writes)} {
			lines[i] = append(lines[i], cell)
		}
	}
	table := row(head...) + rule + "|\n"
	for _, line := range lines {
		table += row(line...)
	}
	return table
}
