package observer

import (
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/audit/apiside"
	"github.com/statusd/statusd/internal/audit/criside"
	"github.com/statusd/statusd/internal/audit/kubeletside"
	"github.com/statusd/statusd/internal/audit/machineside"
	"github.com/statusd/statusd/internal/process"
)

// realSides makes the sides that the config names.
func (o *Observer) realSides(server *rest.Config, changed Changed) (sides Sides, err error) {
	of := func(side audit.Side) func(types.UID) { return func(uid types.UID) { changed(side, uid) } }
	sides.API, err = apiside.New(apiside.Options{Config: server, Node: o.node, Changed: of(audit.SideAPI), Logger: o.log})
	if err != nil {
		return sides, err
	}
	sides.Kubelet, err = kubeletside.New(o.kubeletOptions(of(audit.SideKubelet)))
	if err != nil {
		return sides, err
	}
	if sides.Runtime = noRuntime(time.Now()); o.config.runtimeEndpoint() != "" {
		sides.Runtime, err = criside.New(criside.Options{Endpoint: o.config.runtimeEndpoint(), Pace: criPace, Changed: of(audit.SideRuntime), Logger: o.log})
	}
	if err != nil {
		return sides, err
	}
	sides.Machine, err = machineside.New(machineside.Options{
		Node: o.node, HostRoot: o.config.HostRoot, KubeletRoot: o.config.KubeletRoot,
		Manifests: o.config.Manifests, Process: o.config.Kubelet.Process, PIDFile: o.config.Kubelet.pidFile(),
		Pace: machinePace, Changed: of(audit.SideMachine), Logger: o.log,
	})
	return sides, err
}

// kubeletOptions fills in what the config leaves open: by which certificate the kubelet is known, and by which
// right it is asked.
func (o *Observer) kubeletOptions(changed func(types.UID)) kubeletside.Options {
	k := o.config.Kubelet
	options := kubeletside.Options{
		Node: o.node, Socket: k.PodsSocket, URL: k.URL, CAFile: k.CAFile, Insecure: k.Insecure, ServerName: o.node,
		CertFile: k.CertFile, KeyFile: k.KeyFile, TokenFile: k.TokenFile, Pace: kubeletPace, Changed: changed, Logger: o.log,
	}
	if options.Socket == process.NoSocket {
		options.Socket = ""
	}
	if options.CAFile == "" && !options.Insecure {
		options.CAFile = firstFile(filepath.Join(o.config.HostRoot, o.config.KubeletRoot, "pki/kubelet.crt"), filepath.Join(serviceAccount, "ca.crt"))
	}
	if options.CertFile == "" && options.TokenFile == "" {
		options.TokenFile = firstFile(filepath.Join(serviceAccount, "token"))
	}
	if options.CertFile == "" && options.TokenFile == "" {
		options.CertFile, options.KeyFile = clientFiles(o.config.Kubeconfig)
	}
	return options
}

// clientFiles are the client certificate and its key that a kubeconfig names as files, empty if it has none.
func clientFiles(kubeconfig string) (certificate, key string) {
	if kubeconfig == "" {
		return "", ""
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil || config.CertFile == "" || config.KeyFile == "" {
		return "", ""
	}
	return config.CertFile, config.KeyFile
}

// firstFile returns the first existing path, or "".
func firstFile(paths ...string) string {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}
