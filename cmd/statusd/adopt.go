package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/cri"
	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/internal/run"
	"github.com/statusd/statusd/runtime"
)

func newAdopt() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Take over the running pods of a kubelet on the same container runtime, or give them back",
		Long: "Take over the running pods of a stopped kubelet on the same container runtime: statusd run then goes on with their\n" +
			"containers as they are. With --back, give the pods of a stopped statusd to a kubelet. Either all pods change hands\n" +
			"or none: static pods, user namespaces and volumes that statusd does not know prevent the hand-over, and are named.\n" +
			"The config needs runtime: cri, the kubeconfig of the node, and as cgroupParent the kubelet's cgroupRoot.",
		Example: "  systemctl stop kubelet && statusd adopt --config /etc/statusd/statusd.yaml && systemctl start statusd\n" +
			"  systemctl stop statusd && statusd adopt --back --config /etc/statusd/statusd.yaml && systemctl start kubelet",
		Args: usage(cobra.NoArgs),
	}
	settings := addSettings(cmd, agentConfig)
	back := cmd.Flags().Bool("back", false, "Give the pods of statusd to a kubelet.")
	dir := cmd.Flags().String("kubelet-dir", cri.KubeletDir, "The kubelet's --root-dir.")
	cmd.RunE = settings.doing(func(ctx context.Context, config run.Config) (string, error) {
		if err := mayAdopt(ctx, config); err != nil {
			return "", err
		}
		if *back {
			return release(ctx, config, *dir)
		}
		return adopt(ctx, config, *dir)
	})
	return cmd
}

// mayAdopt makes sure that neither agent runs.
func mayAdopt(ctx context.Context, config run.Config) error {
	if config.Runtime != run.RuntimeCRI {
		return fmt.Errorf("the config has no runtime: cri; processes of this machine cannot change hands: %w", errUsage)
	}
	if agent.Running(ctx, config.Config) {
		return errors.New("statusd runs: stop it first, its pods run on")
	}
	comms, err := filepath.Glob("/proc/[0-9]*/comm")
	for _, comm := range comms {
		name, err := os.ReadFile(comm)
		if err == nil && strings.TrimSpace(string(name)) == "kubelet" {
			return fmt.Errorf("a kubelet runs as process %s: stop it first, its pods run on", filepath.Base(filepath.Dir(comm)))
		}
	}
	return err
}

func adopt(ctx context.Context, config run.Config, dir string) (said string, err error) {
	pods, err := boundPods(ctx, config)
	if err != nil {
		return "", err
	}
	err = withCRI(config, func(rt runtime.Runtime) error {
		taken, err := rt.(*cri.Runtime).Adopt(ctx, pods, dir)
		said = fmt.Sprintf("took over %d pods with their containers; start statusd run now, not the kubelet", taken)
		if err != nil {
			err = fmt.Errorf("%d pods were taken over: %w", taken, err)
		}
		return err
	})
	return said, err
}

func release(ctx context.Context, config run.Config, dir string) (said string, err error) {
	err = withCRI(config, func(rt runtime.Runtime) error {
		given, err := rt.(*cri.Runtime).Release(ctx, dir)
		said = fmt.Sprintf("gave %d pods with their containers to the kubelet; start it now, not statusd", given)
		if err != nil {
			err = fmt.Errorf("%d pods were given to the kubelet: %w", given, err)
		}
		return err
	})
	return said, err
}

// boundPods are the pods of the API that are bound to this node.
func boundPods(ctx context.Context, config run.Config) (pods []*v1.Pod, err error) {
	rest, err := process.LoadKubeconfig(config.Kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return nil, err
	}
	name, err := process.NodeName(config.NodeName)
	if err != nil {
		return nil, err
	}
	list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", name).String()})
	if err != nil {
		return nil, fmt.Errorf("pods of node %s: %w", name, err)
	}
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods, nil
}
