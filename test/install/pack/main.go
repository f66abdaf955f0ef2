// Command pack builds the deb and rpm packages of statusd observe and statusd run from bin/. Run it in test/install: go run ./pack observe|run VERSION
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/statusd/statusd/test/install"
)

func main() {
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func build() error {
	if err := os.Chdir("../.."); err != nil {
		return err
	}
	if err := os.MkdirAll("build", 0o755); err != nil {
		return err
	}
	if len(os.Args) != 3 {
		return errors.New("want observe or run, and a version")
	}
	if err := install.Completions("bin/statusd", "bin"); err != nil {
		return err
	}
	for _, format := range []string{"deb", "rpm"} {
		path, err := install.Package("deploy/packaging/nfpm-"+os.Args[1]+".yaml", "bin", "build", os.Args[2], runtime.GOARCH, format)
		if err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}
