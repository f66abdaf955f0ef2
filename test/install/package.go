package install

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the formats
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// Package makes a package of a config of nfpm and returns its path. The config names files relative to the checkout, which is the working
// directory, and the programs as ${BIN}.
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
