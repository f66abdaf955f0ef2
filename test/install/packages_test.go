package install

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goreleaser/nfpm/v2"
)

// contents are the files of the packages that an operator relies on.
var contents = []string{
	"/usr/bin/statusd", "/usr/bin/kubectl-statusd", "/usr/lib/systemd/system/statusd-observe.service", "/etc/statusd/observe.yaml", "/usr/share/man/man8/statusd.8",
}

// build makes a package of a config in deploy/packaging, with small files in place of the programs.
func build(t *testing.T, name, format string) string {
	t.Helper()
	bin := t.TempDir()
	for _, program := range []string{"statusd", "statusd-shim"} {
		if err := os.WriteFile(filepath.Join(bin, program), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := Completions(filepath.Join(bin, "statusd"), bin); err != nil {
		t.Fatal(err)
	}
	path, err := Package("deploy/packaging/"+name+".yaml", bin, t.TempDir(), "1.2.3", runtime.GOARCH, format)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

func TestPackages_HaveTheServices(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
	}{
		{"nfpm-observe", contents},
		{"nfpm-run", []string{"/usr/bin/statusd", "/usr/bin/statusd-shim", "/usr/lib/systemd/system/statusd.service", "/usr/lib/systemd/logind.conf.d/50-statusd.conf", "/etc/statusd/statusd.yaml",
			"/usr/share/doc/statusd/use/security.md"}}, // which the config names
	} {
		for _, format := range []string{"deb", "rpm"} {
			t.Run(c.name+" "+format, func(t *testing.T) {
				t.Chdir(root)
				config, err := nfpm.ParseFile("deploy/packaging/" + c.name + ".yaml")
				if err != nil {
					t.Fatal(err)
				}
				path := build(t, c.name, format)
				var listed, about, scripts string
				if format == "deb" {
					listed, about = output(t, "dpkg-deb", "--contents", path), output(t, "dpkg-deb", "--info", path)
					scripts = output(t, "dpkg-deb", "--info", path, "postinst") + output(t, "dpkg-deb", "--info", path, "prerm") + output(t, "dpkg-deb", "--info", path, "postrm")
				} else {
					listed, about = output(t, "rpm", "-qplv", path), output(t, "rpm", "-qpi", path)
					scripts = output(t, "rpm", "-qp", "--scripts", path)
				}
				for _, file := range c.files {
					if !strings.Contains(listed, file+"\n") && !strings.Contains(listed, file+" ->") {
						t.Errorf("it has no %s:\n%s", file, listed)
					}
				}
				zsh := map[string]string{"deb": "/usr/share/zsh/vendor-completions/_statusd", "rpm": "/usr/share/zsh/site-functions/_statusd"}[format]
				for _, file := range []string{"/usr/share/bash-completion/completions/statusd", zsh, "/usr/share/fish/vendor_completions.d/statusd.fish"} {
					if !strings.Contains(listed, file+"\n") {
						t.Errorf("it has no %s:\n%s", file, listed)
					}
				}
				if strings.Count(listed, "/_statusd\n") != 1 {
					t.Errorf("want the completions of zsh in one place:\n%s", listed)
				}
				if !strings.Contains(about, "1.2.3") || !strings.Contains(about, config.Name) {
					t.Errorf("got\n%s", about)
				}
				if len(config.Conflicts) != 1 { // both have the program
					t.Errorf("it conflicts with %v, want the other package", config.Conflicts)
				}
				for _, want := range []string{"daemon-reload", "try-restart", "disable --now", "rm -rf"} {
					if !strings.Contains(scripts, want) {
						t.Errorf("the scripts have no %s:\n%s", want, scripts)
					}
				}
				if format == "rpm" {
					if kept := output(t, "rpm", "-qpc", path); !strings.Contains(kept, "/etc/statusd/") {
						t.Errorf("its configs: %s", kept)
					}
				} else if kept := output(t, "dpkg-deb", "--info", path, "conffiles"); !strings.Contains(kept, "/etc/statusd/") {
					t.Errorf("its configs: %s", kept)
				}
			})
		}
	}
}
