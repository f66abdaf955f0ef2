package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/statusd/statusd/test/binaries"
	"github.com/statusd/statusd/test/controlplane"
	"github.com/statusd/statusd/test/gobuild"
	"github.com/statusd/statusd/test/stock"
)

// suite is the directory of the module that has the release of the suite.
const suite = "test/e2e/suite"

// plugins is where Debian has the programs of CNI.
const plugins = "/usr/lib/cni"

// agentProgram is the file of an agent.
func agentProgram(agent string) (string, error) {
	switch agent {
	case "stock":
		return "build/kubelet-1.36.3", nil
	case "kubelet":
		return "build/kubelet-statusd-1.36.3", nil
	case "statusd":
		return "bin/statusd", nil
	}
	return "", fmt.Errorf("unknown agent %q: want stock, kubelet or statusd", agent)
}

// build makes what a run needs and is missing or older than the module of the suite.
func build(ctx context.Context, agent string) error {
	program, err := agentProgram(agent)
	if err != nil {
		return err
	}
	if err := missing(); err != nil {
		return err
	}
	if _, err := controlplane.Build(ctx, os.Stderr); err != nil {
		return err
	}
	if agent == "stock" {
		if _, err := stock.BuildKubelet(ctx, os.Stderr); err != nil {
			return err
		}
	}
	if agent == "statusd" {
		if _, err := binaries.BuildStatusd(ctx, os.Stderr); err != nil {
			return err
		}
	}
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("the agent's program (make kubelet-statusd): %w", err)
	}
	return buildSuite(ctx)
}

// missing is what the machine lacks.
func missing() error {
	lacks := []error{stock.Missing()}
	for _, need := range []struct{ file, debian string }{
		{filepath.Join(plugins, "bridge"), "containernetworking-plugins"},
		{"ip", "iproute2"},
		{"iptables", "iptables"},
		{"bash-static", "bash-static"},
		{"curl", "curl"},
		{"nc.openbsd", "netcat-openbsd"},
	} {
		if _, err := exec.LookPath(need.file); err != nil {
			lacks = append(lacks, fmt.Errorf("the program %s is missing; Debian: apt-get install %s", need.file, need.debian))
		}
	}
	return errors.Join(lacks...)
}

// buildSuite builds the programs of the suite's module into build/e2e.
func buildSuite(ctx context.Context) error {
	release, err := inSuite(ctx, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return err
	}
	flags := versionFlags(release)
	for _, program := range []struct {
		name, of string
		build    func(c gobuild.Command, file string) error
	}{
		{"e2e.test", "k8s.io/kubernetes/test/e2e", func(c gobuild.Command, file string) error {
			return c.Test(ctx, os.Stderr, "-o", file, "-ldflags", flags)
		}},
		{"ginkgo", "github.com/onsi/ginkgo/v2/ginkgo", func(c gobuild.Command, file string) error {
			c.Flags = []string{"-o", file}
			return c.Run(ctx, os.Stderr)
		}},
		// Not as a static program: the suite has compiled most of its packages, and an image has its libraries.
		{"agnhost", "k8s.io/kubernetes/test/images/agnhost", func(c gobuild.Command, file string) error {
			c.Flags = []string{"-o", file, "-ldflags", "-s -w"}
			return c.Run(ctx, os.Stderr)
		}},
		{"nnp", "k8s.io/kubernetes/test/images/nonewprivs", func(c gobuild.Command, file string) error {
			c.Env, c.Flags = []string{"CGO_ENABLED=0"}, []string{"-o", file, "-ldflags", "-s -w"}
			return c.Run(ctx, os.Stderr)
		}},
	} {
		file, err := filepath.Abs(filepath.Join(results, program.name))
		if err != nil {
			return err
		}
		if fresh(file, filepath.Join(suite, "go.mod")) {
			continue
		}
		command := gobuild.Command{Name: program.name + " " + release, Dir: suite, Packages: []string{program.of}}
		// In one step: a file that exists is complete.
		if err := program.build(command, file+".new"); err != nil {
			return err
		}
		if err := os.Rename(file+".new", file); err != nil {
			return err
		}
	}
	return nil
}

// fresh reports whether the file is there and not older than the other one.
func fresh(file, than string) bool {
	made, err := os.Stat(file)
	if err != nil {
		return false
	}
	source, err := os.Stat(than)
	return err == nil && !made.ModTime().Before(source.ModTime())
}

// versionFlags are the linker flags that set the suite's release: some specs compare it with the server's.
func versionFlags(release string) string {
	numbers := strings.Split(strings.TrimPrefix(release, "v"), ".")
	flags := "-s -w"
	for _, component := range []string{"component-base", "client-go/pkg"} {
		for _, variable := range []string{"gitVersion=" + release, "gitMajor=" + numbers[0], "gitMinor=" + numbers[1]} {
			flags += " -X k8s.io/" + component + "/version." + variable
		}
	}
	return flags
}

// inSuite returns what the go command prints in the module of the suite.
func inSuite(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = suite
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(output)), nil
}
