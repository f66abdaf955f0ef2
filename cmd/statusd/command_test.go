package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
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
		t.Errorf("got node %q and state %q (%v), want that of the flag and that of the file", config.NodeName, config.StateDir, err)
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
