package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/statusd/statusd/test/controlplane/server/datadir"
	"github.com/statusd/statusd/test/controlplane/server/pki"
)

// kubeconfigCommand issues a kubeconfig from the authority in the data directory; the server need
// not run, and need not be asked if it does.
func kubeconfigCommand(args []string, stdout io.Writer) error {
	flags := pflag.NewFlagSet("controlplane kubeconfig", pflag.ContinueOnError)
	path := flags.String("data-dir", "", "data directory of the control plane (required)")
	admin := flags.Bool("admin", false, "for an administrator (group system:masters)")
	node := flags.String("node", "", "for the node of this `name` (user system:node:NAME, group system:nodes)")
	out := flags.String("out", "", "write to this `file`, readable by its owner only, instead of to standard output")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("kubeconfig: unexpected argument %q", flags.Arg(0))
	case *path == "":
		return errors.New("kubeconfig: --data-dir is required")
	case *admin == (*node != ""):
		return errors.New("kubeconfig: want one of --admin and --node NAME")
	}
	content, err := issueKubeconfig(*path, *node)
	if err != nil {
		return err
	}
	if *out != "" {
		return datadir.WriteFile(*out, content, 0o600)
	}
	_, err = stdout.Write(content)
	return err
}

// issueKubeconfig is for the node of that name, or for an administrator if the name is empty.
func issueKubeconfig(path, node string) ([]byte, error) {
	dir, err := datadir.Existing(path)
	if err != nil {
		return nil, err
	}
	port, err := dir.Port()
	if err != nil {
		return nil, err
	}
	authority, err := pki.Load(dir.PKI(), time.Now())
	if err != nil {
		return nil, err
	}
	if node == "" {
		return authority.AdminKubeconfig(address(port))
	}
	return authority.NodeKubeconfig(address(port), node)
}
