package image

import (
	"errors"
	"io/fs"
	"os"
)

// Statusd is the image of statusd: its program, which must be linked statically, and the certificates of the authorities for
// webhooks, if the file exists. The architecture is this program's if empty.
func Statusd(name, program, arch, authorities string) (Image, error) {
	binary, err := os.ReadFile(program)
	if err != nil {
		return Image{}, err
	}
	i := Image{
		Name: name, Architecture: arch, Files: map[string]File{"usr/bin/statusd": {Content: binary, Mode: 0o755}},
		Entrypoint: []string{"/usr/bin/statusd"}, Env: []string{"PATH=/usr/bin"},
		Labels: map[string]string{"org.opencontainers.image.title": "statusd"},
	}
	if authorities == "" {
		return i, nil
	}
	certificates, err := os.ReadFile(authorities)
	if errors.Is(err, fs.ErrNotExist) {
		return i, nil
	}
	i.Files["etc/ssl/certs/ca-certificates.crt"] = File{Content: certificates}
	return i, err
}
