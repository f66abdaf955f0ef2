// Command statusd is a node of Kubernetes: it takes pods from the API server and from
// manifests, runs them as processes of this machine, and keeps their status true.
//
//	statusd run [FLAGS]              until SIGTERM or SIGINT
//	statusd config default           every setting with its default and what it is for
//	statusd config check [FILE]      what is wrong with a config and its manifests
//	statusd version
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/statusd/statusd/runtime/process"
)

const usage = `statusd keeps Kubernetes told the truth about the pods of this node.

  statusd run [FLAGS]          run as a node, until SIGTERM or SIGINT; --help lists the flags
  statusd config default       print every setting with its default and what it is for
  statusd config check [FILE]  say what is wrong with a config file and its manifests
  statusd version              print the version
`

// errUsage is an error after which the usage helps.
var errUsage = errors.New("statusd --help says how it is used")

func main() {
	if process.IsShim() {
		os.Exit(process.ShimMain())
	}
	if err := command(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "statusd:", err)
		os.Exit(exitCode(err))
	}
}

func exitCode(err error) int {
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}

// command runs a sub-command. What it is asked for goes to out, and how it goes to the log.
func command(args []string, out io.Writer) error {
	name := "help"
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	var err error
	switch name {
	case "run":
		err = run(args)
	case "config":
		err = config(args, out)
	case "version", "--version":
		_, err = fmt.Fprintln(out, "statusd", version())
	case "help", "--help", "-h":
		_, err = io.WriteString(out, usage)
	case "example-server": // for examples/pods, and no part of the command's promises
		err = exampleServer(args)
	default:
		return fmt.Errorf("unknown command %q: %w", name, errUsage)
	}
	if errors.Is(err, pflag.ErrHelp) {
		return nil // pflag has printed it
	}
	return err
}
