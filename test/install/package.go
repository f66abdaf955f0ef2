package install

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the formats
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

var shells = []string{"bash", "zsh", "fish"}

// Completions writes the completions that a statusd prints into the directory completions of bin, where the packages have them from.
func Completions(statusd, bin string) error {
	dir := filepath.Join(bin, "completions")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, shell := range shells {
		script, err := exec.Command(statusd, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("completions of %s: %w", shell, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "statusd."+shell), script, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Package makes a package of a config of nfpm and returns its path. The config names files relative to the checkout, which is the working
// directory, and the programs as ${BIN}, where [Completions] were written too.
func Package(config, bin, out, version, arch, format string) (string, error) {
	parsed, err := nfpm.ParseFileWithEnvMapping(config, func(name string) string {
		return map[string]string{"BIN": bin, "VERSION": version, "ARCH": arch}[name]
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", config, err)
	}
	info, err := parsed.Get(format)
	if err != nil {
		return "", fmt.Errorf("%s: %w", config, err)
	}
	info = nfpm.WithDefaults(info)
	info.RPM.BuildHost = "localhost" // the package must not depend on the machine
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	info.Target = filepath.Join(out, packager.ConventionalFileName(info))
	file, err := os.Create(info.Target)
	if err != nil {
		return "", err
	}
	if err := packager.Package(info, file); err != nil {
		file.Close()
		return "", fmt.Errorf("%s: %w", info.Target, err)
	}
	return info.Target, file.Close()
}
