package main

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/run"
)

func TestCommandsThatDoNotExist(t *testing.T) {
	for _, args := range [][]string{{"walk"}, {"config"}, {"config", "make"}, {"run", "fast"}, {"run", "--fast"}} {
		err := command(args, &strings.Builder{})
		if !errors.Is(err, errUsage) || exitCode(err) != 2 {
			t.Errorf("statusd %s: got %v, want a hint at the usage and exit code 2", strings.Join(args, " "), err)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, c := range []struct{ command, want string }{{"--help", "statusd run"}, {"version", "statusd "}} {
		var out strings.Builder
		if err := command([]string{c.command}, &out); err != nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("statusd %s prints %q (%v), want %q in it", c.command, out.String(), err, c.want)
		}
	}
}

// Help is what is asked for: it goes to standard output, in every form of asking.
func TestHelpOfACommand(t *testing.T) {
	for _, args := range [][]string{{"run", "--help"}, {"help", "run"}, {"config", "check", "--help"}, {"help", "config", "check"}, {"reset", "-h"}} {
		var out strings.Builder
		if err := command(args, &out); err != nil || !strings.Contains(out.String(), "--state-dir") {
			t.Errorf("statusd %s prints %q (%v), want the flags", strings.Join(args, " "), out.String(), err)
		}
	}
	var out strings.Builder
	if err := command([]string{"completion", "bash"}, &out); err != nil || !strings.Contains(out.String(), "statusd") {
		t.Errorf("no completion for bash: %v", err)
	}
}

// What config check passes, run takes, and the other way round.
func TestConfigCheckRefusesWhatRunRefuses(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "kubeconfig")
	writeFile(t, garbage, "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: https://127.0.0.1:1, certificate-authority-data: Z2FyYmFnZQ==}}]\n"+
		"users: [{name: u}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n")
	const header = "apiVersion: statusd/v1alpha1\nkind: StatusdConfiguration\nhealthzBindAddress: \"\"\nstateDir: state\n"
	for _, c := range []struct{ name, text, want string }{
		{"a missing directory of manifests", "manifests: later\n", ""},
		{"a label that no node may give itself", "manifests: later\nnode: {labels: {node-role.kubernetes.io/edge: \"\"}}\n", "node.labels[node-role.kubernetes.io/edge]"},
		{"a resource that does not exist", "manifests: later\nnode: {reserved: {ram: 1Gi}}\n", "node.reserved[ram]"},
		{"a kubeconfig that is garbage", "manifests: later\nkubeconfig: kubeconfig\n", garbage},
		{"manifests that are a file", "manifests: kubeconfig\n", "manifests"},
	} {
		file := filepath.Join(dir, "statusd.yaml")
		writeFile(t, file, header+c.text)
		var out strings.Builder
		checked := command([]string{"config", "check", file}, &out)
		config, err := parseRun([]string{"--config", file})
		if err == nil {
			var a *run.Process
			if a, err = run.New(config, agent.Options{NewRuntime: newRuntime(config), Logger: slog.New(slog.DiscardHandler)}); err == nil {
				err = a.Close()
			}
		}
		for _, got := range []error{checked, err} {
			if (c.want == "") != (got == nil) || got != nil && !strings.Contains(got.Error(), c.want) {
				t.Errorf("%s: the check returns %v and run %v, want both %q", c.name, checked, err, c.want)
			}
		}
	}
}

// A relative path is relative to the file that it stands in.
func TestRelativePathsOfAConfigFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "statusd.yaml")
	writeFile(t, file, "apiVersion: statusd/v1alpha1\nkind: StatusdConfiguration\nstateDir: state\nmanifests: ./pods\nkubeconfig: ../kubeconfig\n")
	config, err := parseRun([]string{"--config", file})
	want := [3]string{filepath.Join(dir, "state"), filepath.Join(dir, "pods"), filepath.Join(filepath.Dir(dir), "kubeconfig")}
	if got := [3]string{config.StateDir, config.Manifests, config.Kubeconfig}; err != nil || got != want {
		t.Errorf("got %q (%v)\nwant %q", got, err, want)
	}
	if config, err = parseRun([]string{"--config", file, "--state-dir", "here"}); err != nil || config.StateDir != "here" {
		t.Errorf("got %q (%v), want the path of a flag as it is", config.StateDir, err)
	}
}

func TestDefaultConfigPassesTheCheck(t *testing.T) {
	var text strings.Builder
	if err := command([]string{"config", "default"}, &text); err != nil {
		t.Fatal(err)
	}
	file, manifests := filepath.Join(t.TempDir(), "statusd.yaml"), t.TempDir()
	writeFile(t, file, strings.Replace(text.String(), "/etc/statusd/manifests", manifests, 1))
	var out strings.Builder
	if err := command([]string{"config", "check", file}, &out); err != nil || !strings.HasPrefix(out.String(), "ok: ") {
		t.Errorf("the check prints %q and returns %v, want ok", out.String(), err)
	}
}

func TestFlagsOverrideTheConfigFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "statusd.yaml")
	writeFile(t, file, "apiVersion: statusd/v1alpha1\nkind: StatusdConfiguration\nnodeName: file\nstateDir: /file\n")
	config, err := parseRun([]string{"--node-name", "flag", "--config", file})
	if err != nil || config.NodeName != "flag" || config.StateDir != "/file" {
		t.Errorf("got node %q and state %q (%v), want the node of the flag and the state of the file", config.NodeName, config.StateDir, err)
	}
}

func TestConfigCheckNamesAMissingKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "statusd.yaml")
	writeFile(t, file, "apiVersion: statusd/v1alpha1\nkind: StatusdConfiguration\nkubeconfig: /nowhere/kubeconfig\n")
	err := command([]string{"config", "check", file}, &strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), "config: kubeconfig: stat /nowhere/kubeconfig") {
		t.Errorf("got %v, want the missing kubeconfig named", err)
	}
}
