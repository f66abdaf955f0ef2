// Command provider is a node of a provider of virtual-kubelet's kind: provider KUBECONFIG NODE DIRECTORY.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/virtualkubelet"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check(err)
	provider, err := newMock(filepath.Join(os.Args[3], "mock.json"))
	check(err)
	ends, err := journal.Open(filepath.Join(os.Args[3], "journal.db"), journal.Options{NodeName: os.Args[2]})
	check(err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	check(virtualkubelet.Run(ctx, virtualkubelet.Options{Client: kubernetes.NewForConfigOrDie(config), NodeName: os.Args[2], Provider: provider, Journal: ends}))
}
