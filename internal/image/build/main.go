// Command build makes a container image of statusd, as an archive of an OCI image layout that containerd
// imports (ctr -n k8s.io image import FILE) and registries take (skopeo copy oci-archive:FILE docker://NAME).
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"

	"github.com/statusd/statusd/internal/image"
)

func main() {
	name := flag.String("name", "localhost/statusd:dev", "name and tag of the image")
	out := flag.String("o", "build/statusd-image.tar", "the archive")
	program := flag.String("program", "bin/static/statusd", "statusd, linked statically")
	authorities := flag.String("authorities", "/etc/ssl/certs/ca-certificates.crt", "certificates that webhooks are checked against; left out if there is no such file")
	flag.Parse()
	if err := build(*name, *out, *program, *authorities); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func build(name, out, program, authorities string) error {
	binary, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	files := map[string]image.File{"usr/bin/statusd": {Content: binary, Mode: 0o755}}
	certificates, err := os.ReadFile(authorities)
	switch {
	case err == nil:
		files["etc/ssl/certs/ca-certificates.crt"] = image.File{Content: certificates}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	var archive bytes.Buffer
	err = image.Write(&archive, image.Image{
		Name: name, Files: files, Entrypoint: []string{"/usr/bin/statusd"}, Env: []string{"PATH=/usr/bin"},
		Labels: map[string]string{"org.opencontainers.image.title": "statusd"},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(out, archive.Bytes(), 0o644)
}
