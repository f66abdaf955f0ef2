package main

import (
	"context"
	"fmt"
	"net/url"
	"os"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/statusd/statusd/test/controlplane/server/datadir"
)

// etcdSocket is where etcd listens: a file of the data directory, which is also the working
// directory, because the whole path of a socket may not be longer than 107 bytes. A socket needs no
// port, and only users who can read the directory can bypass the API server.
const (
	etcdSocket     = "unix://" + etcdSocketFile
	etcdSocketFile = "etcd.sock"
)

// startEtcd returns when etcd takes writes.
func startEtcd(ctx context.Context, dir *datadir.Dir) (*embed.Etcd, error) {
	if err := os.Chdir(dir.Path()); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	socket, err := url.Parse(etcdSocket)
	if err != nil {
		return nil, err
	}
	config := embed.NewConfig()
	config.Dir = dir.Etcd()
	config.ListenClientUrls = []url.URL{*socket}
	config.ListenPeerUrls = nil                                                   // there are no peers
	config.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration // unset means: warn of every request
	config.Name = "controlplane"
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.LogLevel = "warn"
	config.LogOutputs = []string{"stderr"}

	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("etcd in %s: %w", dir.Etcd(), err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err := <-etcd.Err():
		return nil, fmt.Errorf("etcd in %s: %w", dir.Etcd(), err)
	case <-ctx.Done():
		stopEtcd(etcd)
		return nil, fmt.Errorf("stopped before etcd was ready: %w", ctx.Err())
	}
}

// stopEtcd closes log and database. stopEtcd does not wait for clients, as Close of the embedded server
// does: the only one is the API server of this process, which has stopped or is about to end with it.
func stopEtcd(etcd *embed.Etcd) {
	etcd.Server.Stop()
	os.Remove(etcdSocketFile)
}
