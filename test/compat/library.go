package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
)

// libraryResult is how the library is with a version of k8s.io/*.
type libraryResult struct {
	Version string
	// Builds is whether the packages build; Failed are the tests that fail, and Missing what the compiler does not find.
	Builds          bool
	Failed, Missing []string
}

var (
	undefined = regexp.MustCompile(`undefined: ([\w.]+)|has no field or method (\w+)|unknown field (\w+)`)
	failed    = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
)

// built is printed by test/tools/compat once the packages are built.
const built = "compat: built"

func library(ctx context.Context, versions []string) error {
	var wrong error
	for _, version := range versions {
		fmt.Printf("== k8s.io/* %s\n", version)
		var out bytes.Buffer
		command := exec.CommandContext(ctx, "test/tools/compat", version)
		command.Stdout, command.Stderr = io.MultiWriter(os.Stdout, &out), io.MultiWriter(os.Stderr, &out)
		if err := command.Run(); err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("k8s.io/* %s: %w", version, err))
		}
		if err := keep("library", version, judge(version, out.Bytes())); err != nil {
			return err
		}
	}
	all, err := kept[libraryResult]("library")
	if err != nil {
		return err
	}
	table := libraryTable(all)
	fmt.Print("\n", table)
	return errors.Join(wrong, libraryMarks.Write(document, table))
}

func judge(version string, out []byte) libraryResult {
	r := libraryResult{Version: version, Builds: bytes.Contains(out, []byte(built))}
	for _, found := range failed.FindAllSubmatch(out, -1) {
		r.Failed = append(r.Failed, string(found[1]))
	}
	for _, found := range undefined.FindAllSubmatch(out, -1) {
		r.Missing = append(r.Missing, string(bytes.Join(found[1:], nil)))
	}
	for _, list := range []*[]string{&r.Failed, &r.Missing} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return r
}

func libraryTable(all []libraryResult) string {
	table := row("`k8s.io/*`", "the library builds", "tests that fail") + "|---|---|---|\n"
	for _, r := range all {
		builds, tests := "yes", names(r.Failed)
		if !r.Builds {
			builds, tests = "no: there is no "+names(r.Missing), "not run"
		}
		table += row(r.Version, builds, tests)
	}
	return table
}
