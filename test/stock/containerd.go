package stock

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/statusd/statusd/internal/image"
	"github.com/statusd/statusd/test/campaign"
)

//go:embed containerd.toml
var containerdConfig string

const (
	// Image is the image of the pods' containers: a static busybox.
	Image = "docker.io/library/host:latest"
	// hostNetwork is a network without plugins: without a network a node is not ready, and pods use the host's
	// network.
	hostNetwork = `{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "none"}]}`
)

// Network is the network of a node's pods.
type Network struct {
	// Config is a list of CNI plugins, and Plugins the directory of their programs.
	Config, Plugins string
	// Address is the node's: the kubelet listens there, with a certificate of the cluster's authority, and reports it. A
	// kubelet refuses one of the loopback interface.
	Address string
	// Port is the kubelet's there; 0: a free one.
	Port int
}

// Containerd is the runtime of a node.
type Containerd struct {
	Dir    string // of the node
	Launch Launcher
	// Network is the pods' network; nil: the host's.
	Network *Network

	process *Process
}

// Start runs containerd unless it runs, waits until it answers, and makes the images the first time.
func (c *Containerd) Start(ctx context.Context) error {
	if c.process != nil && !c.process.Over() {
		return nil
	}
	network := c.Network
	if network == nil {
		network = &Network{Config: hostNetwork, Plugins: filepath.Join(c.Dir, "cni", "bin")}
	}
	config, err := writeConfig(c.Dir, "containerd.toml", containerdConfig, map[string]string{"PLUGINS": network.Plugins})
	if err != nil {
		return err
	}
	if _, err := writeConfig(c.Dir, "cni.conflist", network.Config, nil); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(c.Dir, "run"), 0o711); err != nil {
		return err
	}
	if c.process, err = c.Launch("containerd", "containerd", "--config", config); err != nil {
		return err
	}
	if err := Await(ctx, func() error { return c.alive(c.ctr(ctx, "version")) }); err != nil {
		return err
	}
	busybox, err := busyboxImage()
	if err != nil {
		return err
	}
	host, pause := busybox, busybox
	host.Name, host.Cmd = Image, []string{"/bin/sh"}
	pause.Name, pause.Cmd = "docker.io/library/pause:hand", []string{"/bin/sh", "-c", "while :; do sleep 1000; done"}
	for _, i := range []image.Image{host, pause} {
		if err := c.loadOnce(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// alive adds to an error that containerd has ended, if so.
func (c *Containerd) alive(err error) error {
	if err != nil && c.process.Over() {
		return fmt.Errorf("containerd: %w, see %s: %w", campaign.ErrEnded, c.process.Log(), err)
	}
	return err
}

// Process is containerd's.
func (c *Containerd) Process() *Process { return c.process }

// Socket is where it serves CRI.
func (c *Containerd) Socket() string { return filepath.Join(c.Dir, "run", "containerd.sock") }

func (c *Containerd) ctr(ctx context.Context, args ...string) error {
	output, err := exec.CommandContext(ctx, "ctr", append([]string{"-a", c.Socket(), "-n", "k8s.io"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return nil
}

// LoadImage imports an archive of images.
func (c *Containerd) LoadImage(ctx context.Context, archive string) error {
	return c.ctr(ctx, "image", "import", archive)
}

// RemoveImage removes an image, even if containers use it.
func (c *Containerd) RemoveImage(ctx context.Context, name string) error {
	return c.ctr(ctx, "image", "rm", "--sync", name)
}

// loadOnce imports the image unless an earlier start did: its archive is there.
func (c *Containerd) loadOnce(ctx context.Context, i image.Image) error {
	file := filepath.Join(c.Dir, strings.NewReplacer("/", "-", ":", "-").Replace(i.Name)+".tar")
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var archive bytes.Buffer
	if err := image.Write(&archive, i); err != nil {
		return err
	}
	if err := os.WriteFile(file, archive.Bytes(), 0o644); err != nil {
		return err
	}
	return c.LoadImage(ctx, file)
}

// busyboxImage has nothing but a static busybox, and the applets that pods use.
func busyboxImage() (image.Image, error) {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return image.Image{}, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return image.Image{}, err
	}
	links := map[string]string{}
	for _, applet := range []string{"sh", "sleep", "test", "rm", "wc", "echo", "cat", "dd", "true", "false", "touch", "kill"} {
		links["bin/"+applet] = "busybox"
	}
	return image.Image{
		Files: map[string]image.File{"bin/busybox": {Content: content, Mode: 0o755}},
		Links: links,
		Env:   []string{"PATH=/bin"},
	}, nil
}

// writeConfig makes a file of the node's directory from a text with $NAME in it.
func writeConfig(dir, name, text string, values map[string]string) (string, error) {
	file := filepath.Join(dir, name)
	expanded := os.Expand(text, func(name string) string {
		if name == "DIR" {
			return dir
		}
		return values[name]
	})
	return file, os.WriteFile(file, []byte(expanded), 0o644)
}
