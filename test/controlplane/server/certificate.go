package main

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"

	"github.com/statusd/statusd/test/controlplane/server/datadir"
	"github.com/statusd/statusd/test/controlplane/server/pki"
)

// certificateCommand issues a certificate for a server on this machine that clients reach by a name, such
// as the Service of an API server which is registered with an APIService.
func certificateCommand(args []string) error {
	flags := pflag.NewFlagSet("controlplane certificate", pflag.ContinueOnError)
	path := flags.String("data-dir", "", "data directory of the control plane (required)")
	name := flags.String("name", "", "DNS `name` of the server (required); localhost and the loopback address are added")
	out := flags.String("out", "", "write `PREFIX`.crt and PREFIX.key, readable by their owner only (required)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("certificate: unexpected argument %q", flags.Arg(0))
	case *path == "" || *name == "" || *out == "":
		return errors.New("certificate: --data-dir, --name and --out are required")
	}
	dir, err := datadir.Existing(*path)
	if err != nil {
		return err
	}
	authority, err := pki.Load(dir.PKI(), time.Now())
	if err != nil {
		return err
	}
	pair, err := authority.IssueServer([]string{*name, "localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	_, _, err = pair.Write(*out)
	return err
}
