//go:build real

package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statusd/statusd/test/binaries"
)

func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = "../../.."
	cmd.Env = append(os.Environ(), env...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, output)
	}
	return string(output)
}

// install builds the package and installs it in a scratch root.
func install(t *testing.T) (root string, dpkg func(args ...string) string) {
	t.Helper()
	bin, out, root := binaries.Dir(t, binaries.Statusd, binaries.Shim), t.TempDir(), t.TempDir()
	lines := strings.Fields(run(t, []string{"BIN=" + bin, "OUT=" + out, "VERSION=1.2.3"}, "sh", "-c", "umask 077 && exec deploy/packaging/deb/build"))
	deb := lines[len(lines)-1]
	database := filepath.Join(root, "var/lib/dpkg")
	for _, dir := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(database, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(database, "status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg = func(args ...string) string {
		t.Helper()
		return run(t, nil, "dpkg", append([]string{"--root=" + root, "--force-script-chrootless", "--force-not-root", "--log=/dev/null"}, args...)...)
	}
	dpkg("-i", deb)
	return root, dpkg
}

// The package installs without a running systemd, what it installs works, the config is the
// operator's, and after a purge nothing is left.
func TestPackageInstallsInAScratchRoot(t *testing.T) {
	root, dpkg := install(t)
	for path, mode := range map[string]os.FileMode{
		"usr/bin/statusd": 0o755, "usr/bin/statusd-shim": 0o755, "etc/statusd/statusd.yaml": 0o600,
		"usr/lib/systemd/system/statusd.service": 0o644, "usr/lib/systemd/system/statusd-observe.service": 0o644, "etc/statusd/observe.yaml": 0o600, "usr/share/man/man8/statusd.8.gz": 0o644, "usr/share/doc/statusd/use/node.md": 0o644,
		"usr/bin/kubectl-statusd": 0o755, "usr/bin/kubectl_complete-statusd": 0o755, "usr/share/bash-completion/completions/statusd": 0o644,
		"usr/share/zsh/vendor-completions/_statusd": 0o644, "usr/share/fish/vendor_completions.d/statusd.fish": 0o644,
	} {
		if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v (%v), want mode %o", path, info, err, mode)
		}
	}
	config := filepath.Join(root, "etc/statusd/statusd.yaml")
	if said := run(t, nil, filepath.Join(root, "usr/bin/statusd"), "config", "check", config); !strings.Contains(said, "ok: ") {
		t.Errorf("the installed config: %s", said)
	}
	if status := dpkg("-s", "statusd"); !strings.Contains(status, "install ok installed") || !strings.Contains(status, "/etc/statusd/statusd.yaml") {
		t.Errorf("got %s\nwant an installed package whose config is the operator's", status)
	}
	dpkg("--remove", "statusd")
	if _, err := os.Stat(config); err != nil {
		t.Errorf("the config is gone after a removal: %v", err)
	}
	dpkg("--purge", "statusd")
	for _, path := range []string{"etc/statusd", "usr/bin/statusd", "usr/lib/systemd"} {
		if _, err := os.Stat(filepath.Join(root, path)); err == nil {
			t.Errorf("%s is left after a purge", path)
		}
	}
}

// systemd itself understands unit and drop-in.
func TestSystemdVerifiesTheUnit(t *testing.T) {
	dir := t.TempDir()
	unit, err := os.ReadFile("../../../deploy/packaging/statusd.service")
	if err != nil {
		t.Fatal(err)
	}
	hardened, err := os.ReadFile("../../../deploy/packaging/hardened.conf")
	if err != nil {
		t.Fatal(err)
	}
	// A program that exists in place of the installed one, and no manual, which is not installed either.
	text := strings.NewReplacer("/usr/bin/statusd", "/bin/true", "man:statusd(8) ", "").Replace(string(unit))
	file := filepath.Join(dir, "statusd.service")
	dropIn := file + ".d/hardened.conf"
	if err := os.MkdirAll(filepath.Dir(dropIn), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{file: text, dropIn: string(hardened)} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if said := run(t, nil, "systemd-analyze", "verify", "--man=no", file); strings.Contains(said, "statusd.service") {
		t.Errorf("systemd-analyze says\n%s", said)
	}
}
