// Command release builds what a release consists of. Run it in test/install: go run ./release [-again] VERSION OUT
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/statusd/statusd/test/install"
)

// mostSize is what a program may weigh. statusd has 48 MB; with text/template or html/template anywhere in it, it has 67: they keep every exported
// method of every type.
const mostSize = 60_000_000

func main() {
	again := flag.Bool("again", false, "build all of it twice and compare the bytes")
	flag.Parse()
	if err := release(*again, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func release(again bool, args []string) error {
	if len(args) != 2 {
		return errors.New("want a version and a directory")
	}
	if err := os.Chdir("../.."); err != nil {
		return err
	}
	version, out := args[0], args[1]
	when, err := commitTime()
	if err != nil {
		return err
	}
	tools, err := os.MkdirTemp("", "statusd-release-tools-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tools)
	if err := build(version)(tools, runtime.GOARCH); err != nil {
		return err
	}
	r := install.Release{Version: version, Out: out, Time: when, Build: build(version), Run: filepath.Join(tools, "statusd")}
	names, err := r.Make()
	if err != nil {
		return err
	}
	for _, name := range names {
		info, err := os.Stat(filepath.Join(out, name))
		if err != nil {
			return err
		}
		fmt.Printf("%9.1f KiB  %s\n", float64(info.Size())/1024, name)
	}
	if !again {
		return nil
	}
	return compare(r, tools)
}

// compare makes the release once more and compares the checksums.
func compare(r install.Release, tools string) error {
	first := r.Out
	r.Out = filepath.Join(tools, "again")
	if _, err := r.Make(); err != nil {
		return err
	}
	before, err1 := os.ReadFile(filepath.Join(first, "SHA256SUMS"))
	after, err2 := os.ReadFile(filepath.Join(r.Out, "SHA256SUMS"))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if string(before) != string(after) {
		return fmt.Errorf("built twice, the files differ:\n%s\n%s", before, after)
	}
	fmt.Println("built twice: the same bytes")
	return nil
}

// build builds static programs without paths, symbols or data of the checkout in them. Without the tag, gRPC links html/template for a page that
// statusd does not serve; a program that links templates keeps every exported method.
func build(version string) func(dir, arch string) error {
	return func(dir, arch string) error {
		for _, program := range []string{"statusd", "statusd-shim"} {
			path := filepath.Join(dir, program)
			command := exec.Command("go", "build", "-tags", "grpcnotrace", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.stamped="+version, "-o", path, "./cmd/"+program)
			command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=-mod=readonly")
			command.Stderr = os.Stderr
			if err := command.Run(); err != nil {
				return err
			}
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			fmt.Printf("%9.1f KiB  %s (%s)\n", float64(info.Size())/1024, program, arch)
			if info.Size() > mostSize {
				return fmt.Errorf("%s for %s has %d bytes, and may have %d: find out with -ldflags=-dumpdep whether something calls methods by name (ReflectMethod)", program, arch, info.Size(), mostSize)
			}
		}
		return nil
	}
}

func commitTime() (time.Time, error) {
	out, err := exec.Command("git", "log", "-1", "--format=%ct").Output()
	if err != nil {
		return time.Time{}, fmt.Errorf("time of the commit: %w", err)
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return time.Unix(seconds, 0), err
}
