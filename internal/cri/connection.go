package cri

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
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
	// connectRetry is the pause after a request that such a container runtime has refused.
	connectRetry = 200 * time.Millisecond
	// sandboxTime bounds the making of a sandbox, whose network may take long.
	sandboxTime = 4 * time.Minute
)

// connection is the client of the container runtime.
type connection struct {
	runtimeapi.RuntimeServiceClient
	images  runtimeapi.ImageServiceClient
	conn    *grpc.ClientConn
	name    string // containerd, cri-o
	systemd bool   // systemd makes control groups
	release atomic.Pointer[release]
	// sandboxImage is the image of sandboxes, where the container runtime shows it. Versions that do not protect that image do.
	sandboxImage string
}

// release is what can change while statusd runs, when the container runtime is upgraded.
type release struct {
	version string
	// handlers are what the ways to run a pod can do, by name; empty if the container runtime does not say.
	handlers map[string]*runtimeapi.RuntimeHandlerFeatures
	// strictGroups: containers can be without the groups that their image gives to their user.
	strictGroups bool
}

// connect queries the container runtime's name and version.
func connect(endpoint string) (*connection, error) {
	conn, err := nodeclient.Runtime(endpoint)
	if err != nil {
		return nil, err
	}
	c := &connection{RuntimeServiceClient: runtimeapi.NewRuntimeServiceClient(conn), images: runtimeapi.NewImageServiceClient(conn), conn: conn}
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	defer cancel()
	version, err := c.introduce(ctx)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("container runtime at %s: %w", endpoint, err)
	}
	c.name = version.RuntimeName
	c.configure(ctx)
	return c, c.learn(ctx)
}

// learn asks for what an upgrade can have changed.
func (c *connection) learn(ctx context.Context) error {
	version, err := c.Version(ctx, &runtimeapi.VersionRequest{})
	if err != nil {
		return err
	}
	status, err := c.Status(ctx, &runtimeapi.StatusRequest{})
	if err != nil {
		return err
	}
	handlers := map[string]*runtimeapi.RuntimeHandlerFeatures{}
	for _, handler := range status.RuntimeHandlers {
		handlers[handler.Name] = handler.Features
	}
	c.release.Store(&release{version.RuntimeVersion, handlers, status.GetFeatures().GetSupplementalGroupsPolicy()})
	return nil
}

// features are what a handler of the container runtime can do.
func (c *connection) features(handler string) *runtimeapi.RuntimeHandlerFeatures {
	return c.release.Load().handlers[handler]
}

// introduce asks the container runtime for its name and version until it says them: while it starts, it refuses each request.
func (c *connection) introduce(ctx context.Context) (*runtimeapi.VersionResponse, error) {
	for {
		version, err := c.Version(ctx, &runtimeapi.VersionRequest{}, grpc.WaitForReady(true))
		if err == nil {
			return version, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(connectRetry):
		}
	}
}

// configure asks by which driver control groups are made, and which image sandboxes have. Older versions of containerd show both only in
// their configuration.
func (c *connection) configure(ctx context.Context) {
	var shown struct {
		SandboxImage string
		Containerd   struct {
			DefaultRuntimeName string
			Runtimes           map[string]struct{ Options struct{ SystemdCgroup bool } }
		}
	}
	if response, err := c.Status(ctx, &runtimeapi.StatusRequest{Verbose: true}); err == nil {
		_ = json.Unmarshal([]byte(response.Info["config"]), &shown) // other container runtimes have none
	}
	c.sandboxImage = shown.SandboxImage
	c.systemd = shown.Containerd.Runtimes[shown.Containerd.DefaultRuntimeName].Options.SystemdCgroup
	if config, err := c.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{}); err == nil {
		c.systemd = config.GetLinux().GetCgroupDriver() == runtimeapi.CgroupDriver_SYSTEMD
	}
}

// isGone reports whether the container runtime does not know what a request was about.
func isGone(err error) bool { return status.Code(err) == codes.NotFound }

// ask bounds a request that should be quick.
func (r *Runtime) ask(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.options.Timeout)
}
