package scenes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"text/template"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/stock"
)

// ObserverOptions say how statusd observe runs beside a node.
type ObserverOptions struct {
	// Program is statusd, an absolute path.
	Program string
	// Name is that of its directory and log below the node's.
	Name string
	// Kubeconfig and TokenFile are its credentials for the API and for the kubelet.
	Kubeconfig, TokenFile string
	// PIDFile has the process ID of the kubelet. Empty: the kubelet is found by its name.
	PIDFile string
	// Settings are more lines of its configuration.
	Settings string
}

// Observer is a statusd observe.
type Observer struct {
	Process *stock.Process
	// Config is its configuration's file, State its directory, Socket and Address are where it answers.
	Config, State, Socket, Address string

	client *queryapi.Client
}

var observerConfig = template.Must(template.New("observe.yaml").Parse(`apiVersion: statusd/v1alpha1
kind: ObserveConfiguration
nodeName: {{.Node.Name}}
kubeconfig: {{.Kubeconfig}}
stateDir: {{.State}}
kubeletRoot: {{.Node.Kubelet.Root}}
manifests: {{.Node.Manifests}}
criEndpoint: unix://{{.Node.Containerd.Socket}}
healthzBindAddress: {{.Address}}
kubelet:
  podsSocket: {{.Node.Kubelet.PodsSocket}}
  url: https://{{.Node.Kubelet.Address}}
  tokenFile: {{.TokenFile}}
  process: {{or .PIDFile "kubelet"}}
{{.Settings}}`))

// StartObserver runs statusd observe on the node, and returns when it answers.
func StartObserver(ctx context.Context, n *stock.Node, o ObserverOptions) (*Observer, error) {
	base := filepath.Join(n.Dir(), o.Name)
	observer := &Observer{Config: base + ".yaml", State: base, Socket: filepath.Join(base, "statusd.sock")}
	port, err := n.Port()
	if err != nil {
		return nil, err
	}
	observer.Address = fmt.Sprintf("127.0.0.1:%d", port)
	file, err := os.Create(observer.Config)
	if err != nil {
		return nil, err
	}
	err = observerConfig.Execute(file, struct {
		ObserverOptions
		Node                   *stock.Node
		State, Socket, Address string
	}{o, n, observer.State, observer.Socket, observer.Address})
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if observer.Process, err = n.Start(o.Name, o.Program, "observe", "--config", observer.Config); err != nil {
		return nil, err
	}
	observer.client = queryapi.NewSocketClient(observer.Socket)
	err = stock.Await(ctx, func() error {
		_, err := observer.Audit(ctx)
		return err
	})
	if err != nil {
		observer.Close()
		return nil, err
	}
	return observer, nil
}

// Audit is what the observer says now.
func (o *Observer) Audit(ctx context.Context) (audit.Report, error) {
	if o.Process.Over() {
		return audit.Report{}, fmt.Errorf("statusd observe: %w, see %s", campaign.ErrEnded, o.Process.Log())
	}
	return o.client.Audit(ctx)
}

// Client asks the observer.
func (o *Observer) Client() *queryapi.Client { return o.client }

// Stop stops it gracefully: it saves its measurements.
func (o *Observer) Stop() {
	o.Process.Signal(syscall.SIGTERM)
	<-o.Process.Exited()
	o.client.Close()
}

// Close ends it.
func (o *Observer) Close() {
	o.Process.Kill()
	o.client.Close()
}
