package cri

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/node/volume"
	"github.com/statusd/statusd/internal/wholefile"
)

// Options of a runtime. Only Dir is required.
type Options struct {
	// Dir holds the runtime's own records. It is created if missing.
	Dir string
	// Endpoint is the socket of the container runtime, as in unix:///run/containerd/containerd.sock. Empty: found in the usual places.
	Endpoint string
	// LogDir has the logs of containers; /var/log/pods if empty, where collectors look for them.
	LogDir string
	// CgroupParent is the control group under which the groups of pods are made, as the kubelet's --cgroup-root: kubepods in it.
	CgroupParent string
	// ClusterDNS are the addresses of the cluster's DNS server, and ClusterDomain its domain. Without them pods use the resolver of the node.
	ClusterDNS    []string
	ClusterDomain string
	// ResolvConf is the resolver configuration of the node. If empty, /etc/resolv.conf, or that of the servers which systemd-resolved asks.
	ResolvConf string

	// Addresses returns the IP addresses of the node, which pods with its network have.
	Addresses func() []string
	// Allocatable returns the node's allocatable resources; nil stands for none.
	Allocatable func() v1.ResourceList
	// Objects reads config maps, secrets and tokens, and Client services and runtime classes. Nil: no API server.
	Objects volume.Objects
	Client  kubernetes.Interface
	// LogMaxBytes and LogMaxFiles bound the log of each container: 10 MiB and 5 if 0.
	LogMaxBytes int64
	LogMaxFiles int
	// Event takes events of pods that no caller hears of; may be nil.
	Event func(pod *v1.Pod, container, eventType, reason, message string)
	// Logger receives errors that no caller receives; nil: no logging.
	Logger *slog.Logger

	// Relist is how often sandboxes and containers are listed; a second if 0.
	Relist time.Duration
	// Timeout bounds a request that should be quick; 2 minutes if 0.
	Timeout time.Duration

	// For tests:
	diskUsage   func(path string) (used, size uint64, err error) // of its file system
	writeRecord func(path string, data []byte) error             // durably
}

// Endpoints are where container runtimes listen.
var Endpoints = []string{
	"unix:///run/containerd/containerd.sock",
	"unix:///run/crio/crio.sock",
	"unix:///run/k3s/containerd/containerd.sock",
}

// FindEndpoint returns the first of the usual endpoints that exists.
func FindEndpoint() (string, error) {
	for _, endpoint := range Endpoints {
		if _, err := os.Stat(endpoint[len("unix://"):]); err == nil {
			return endpoint, nil
		}
	}
	return "", fmt.Errorf("no container runtime was found at %v: start one, or set containerRuntimeEndpoint", Endpoints)
}

func (o Options) withDefaults() (Options, error) {
	if o.Dir == "" {
		return o, errors.New("Options.Dir is empty; name the directory where the runtime keeps its state")
	}
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return o, err
	}
	if o.Endpoint == "" {
		if o.Endpoint, err = FindEndpoint(); err != nil {
			return o, err
		}
	}
	if o.LogDir == "" {
		o.LogDir = "/var/log/pods"
	}
	if o.Addresses == nil {
		o.Addresses = func() []string { return nil }
	}
	if o.Allocatable == nil {
		o.Allocatable = func() v1.ResourceList { return nil }
	}
	if o.LogMaxBytes == 0 {
		o.LogMaxBytes = 10 << 20
	}
	if o.LogMaxFiles == 0 {
		o.LogMaxFiles = 5
	}
	if o.Event == nil {
		o.Event = func(*v1.Pod, string, string, string, string) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Relist == 0 {
		o.Relist = time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.diskUsage == nil {
		o.diskUsage = diskUsage
	}
	if o.writeRecord == nil {
		o.writeRecord = wholefile.Write
	}
	return o, nil
}
