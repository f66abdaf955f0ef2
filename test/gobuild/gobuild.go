// Package gobuild runs go build and shows how many packages are compiled of how many.
package gobuild

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/statusd/statusd/test/progress"
)

// A Command is one go build.
type Command struct {
	// Name is the name of the build, for the line of progress.
	Name string
	// Dir is the working directory; empty: the current one.
	Dir string
	// Env is added to the environment.
	Env []string
	// Flags are those of go build, among them -o.
	Flags []string
	// Packages are the packages to build.
	Packages []string
}

// Dependencies compiles dependencies of packages' tests that the build cache does not have, and shows the progress. Programs
// are not linked. Packages that only one test imports are left to go test.
func Dependencies(ctx context.Context, w io.Writer, name string, flags, packages []string) error {
	return Command{Name: name, Flags: flags, Packages: packages}.dependencies(ctx, w)
}

// Test makes a test binary of the one package, with more flags of go test -c, among them -o. It shows the compiled packages
// on w.
func (c Command) Test(ctx context.Context, w io.Writer, flags ...string) error {
	if err := c.dependencies(ctx, w); err != nil {
		return err
	}
	output, err := c.command(ctx, slices.Concat([]string{"test", "-c", "-vet=off"}, c.Flags, flags)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build %s: %w\n%s", c.Name, err, output)
	}
	return nil
}

func (c Command) dependencies(ctx context.Context, w io.Writer) error {
	stale, err := c.list(ctx, "-test")
	if err != nil || len(stale) == 0 {
		return nil // go test reports what is wrong
	}
	c.Packages = stale
	return c.Run(ctx, w)
}

// Run builds. It shows the compiled packages on w, if any. The error has the compiler's report.
func (c Command) Run(ctx context.Context, w io.Writer) error {
	line := progress.On(w)
	defer line.Close()
	stale, _ := c.list(ctx) // what is wrong, go build reports
	total := len(stale)
	began, compiled, problems := time.Now(), 0, []string{}
	cmd := c.command(ctx, append([]string{"build", "-v"}, c.Flags...)...)
	output, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build %s: %w", c.Name, err)
	}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if text := lines.Text(); !isPackage(text) {
			problems = append(problems, text)
			continue
		}
		compiled++
		line.Set("building %s: %d of %d packages compiled, %s", c.Name, compiled, max(compiled, total), time.Since(began).Round(time.Second))
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", c.Name, err, strings.Join(problems, "\n"))
	}
	if spent := time.Since(began); spent > 10*time.Second {
		fmt.Fprintf(line, "built %s: %d packages compiled in %s\n", c.Name, compiled, spent.Round(time.Second))
	}
	return nil
}

func (c Command) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", append(args, c.Packages...)...)
	cmd.Dir, cmd.Env = c.Dir, append(os.Environ(), c.Env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go then removes its work directory
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// list returns the packages that are needed and not in the build cache. With -test those of tests are among them, and neither
// programs nor variants of packages for a test.
func (c Command) list(ctx context.Context, more ...string) ([]string, error) {
	format := "{{if .Stale}}{{.ImportPath}}{{end}}"
	if len(more) > 0 {
		format = `{{if and .Stale (ne .Name "main") (not .ForTest)}}{{.ImportPath}}{{end}}`
	}
	args := append([]string{"list", "-e", "-deps", "-f", format}, more...)
	for _, flag := range c.Flags {
		if strings.HasPrefix(flag, "-mod=") || strings.HasPrefix(flag, "-tags=") || flag == "-trimpath" || flag == "-race" {
			args = append(args, flag)
		}
	}
	output, err := c.command(ctx, args...).Output()
	return strings.Fields(string(output)), err
}

// isPackage reports whether a line of go build -v is the path of a package, and not a message.
func isPackage(line string) bool { return line != "" && !strings.ContainsAny(line, " \t:#") }
