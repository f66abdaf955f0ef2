package cri

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/nodeclient"
)

const (
	// connectTime is how long New waits for a container runtime that does not answer yet, as at the start of the machine.
	connectTime = 20 * time.Second
	// sandboxTime bounds the making of a sandbox, whose network may take long.
	sandboxTime = 4 * time.Minute
)

// connection is the client of the container runtime.
type connection struct {
	runtimeapi.RuntimeServiceClient
	images  runtimeapi.ImageServiceClient
	conn    *grpc.ClientConn
	name    string // containerd, cri-o
	version string
	systemd bool // systemd makes control groups
}

// connect asks the container runtime who it is.
func connect(endpoint string) (*connection, error) {
	conn, err := nodeclient.Runtime(endpoint)
	if err != nil {
		return nil, err
	}
	c := &connection{RuntimeServiceClient: runtimeapi.NewRuntimeServiceClient(conn), images: runtimeapi.NewImageServiceClient(conn), conn: conn}
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	defer cancel()
	version, err := c.Version(ctx, &runtimeapi.VersionRequest{}, grpc.WaitForReady(true))
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("container runtime at %s: %w", endpoint, err)
	}
	c.name, c.version = version.RuntimeName, version.RuntimeVersion
	c.systemd = c.usesSystemd(ctx)
	return c, nil
}

// usesSystemd asks by which driver control groups are made. Older versions of containerd show it only in their configuration.
func (c *connection) usesSystemd(ctx context.Context) bool {
	config, err := c.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{})
	if err == nil {
		return config.GetLinux().GetCgroupDriver() == runtimeapi.CgroupDriver_SYSTEMD
	}
	response, err := c.Status(ctx, &runtimeapi.StatusRequest{Verbose: true})
	if err != nil {
		return false
	}
	var shown struct {
		Containerd struct {
			DefaultRuntimeName string
			Runtimes           map[string]struct{ Options struct{ SystemdCgroup bool } }
		}
	}
	if json.Unmarshal([]byte(response.Info["config"]), &shown) != nil {
		return false
	}
	return shown.Containerd.Runtimes[shown.Containerd.DefaultRuntimeName].Options.SystemdCgroup
}

// isGone reports whether the container runtime does not know what a request was about.
func isGone(err error) bool { return status.Code(err) == codes.NotFound }

// ask bounds a request that should be quick.
func (r *Runtime) ask(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.options.Timeout)
}
