// Command build makes a container image of statusd, as an archive of an OCI image layout that containerd
// imports (ctr -n k8s.io image import FILE) and registries take (skopeo copy oci-archive:FILE docker://NAME).
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/statusd/statusd/internal/image"
)

func main() {
	name := flag.String("name", "localhost/statusd:dev", "name and tag of the image")
	out := flag.String("o", "build/statusd-image.tar", "the archive")
	program := flag.String("program", "bin/static/statusd", "statusd, linked statically")
	arch := flag.String("arch", "", "architecture of the program; of this machine if empty")
	authorities := flag.String("authorities", "/etc/ssl/certs/ca-certificates.crt", "certificates that webhooks are checked against; left out if there is no such file")
	flag.Parse()
	if err := build(*name, *out, *program, *arch, *authorities); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func build(name, out, program, arch, authorities string) error {
	i, err := image.Statusd(name, program, arch, authorities)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := image.Write(&archive, i); err != nil {
		return err
	}
	return os.WriteFile(out, archive.Bytes(), 0o644)
}
