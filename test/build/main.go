// Command build builds programs and shows how far it is.
//
//	build programs          bin/statusd, bin/statusd-shim and the other programs of tests
//	build programs NAME...  some of them
//	build controlplane      bin/controlplane, if it is missing or older than its sources
//	build go NAME FLAGS PKG go build FLAGS PKG
//	build in DIR NAME       go build ./... in DIR: a nested module is compiled before its tests
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/statusd/statusd/test/binaries"
	"github.com/statusd/statusd/test/controlplane/binary"
	"github.com/statusd/statusd/test/gobuild"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := build(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func build(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "controlplane":
		_, err := binary.Build(ctx, os.Stderr)
		return err
	case len(args) == 1 && args[0] == "programs":
		return binaries.Build(ctx, os.Stderr, "bin", binaries.All()...)
	case len(args) > 1 && args[0] == "programs":
		return binaries.Build(ctx, os.Stderr, "bin", args[1:]...)
	case len(args) == 3 && args[0] == "in":
		return gobuild.Command{Name: args[2], Dir: args[1], Packages: []string{"./..."}}.Run(ctx, os.Stderr)
	case len(args) > 2 && args[0] == "go":
		last := len(args) - 1
		return gobuild.Command{Name: args[1], Flags: args[2:last], Packages: args[last:]}.Run(ctx, os.Stderr)
	}
	return errors.New("build what? programs [NAME...], controlplane, in DIR NAME, or go NAME FLAGS PACKAGE")
}
