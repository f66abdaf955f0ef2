package alertsetup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/actions"
	"github.com/statusd/statusd/internal/alert/deliver"
	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/internal/alert/expr"
	"github.com/statusd/statusd/internal/alert/kubeoutputs"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/nodecondition"
	"github.com/statusd/statusd/internal/view"
)

// The files in the state directory.
const (
	alertsFile  = "alerts"
	actionsFile = "actions"
)

// StateFiles are patterns of the files in the state directory.
var StateFiles = []string{alertsFile + "*", actionsFile + "*"}

// Process has the sources and abilities of a process. Source, Node and StateDir are required.
type Process struct {
	Source view.Source
	Audit  view.AuditSource // nil: no audit
	Guard  view.GuardSource // nil: no guard
	// Kubelet returns numbers about the kubelet; nil: they are unknown.
	Kubelet func() expr.KubeletFacts
	// Ready is closed once the source knows its pods; nil: the source is ready.
	Ready <-chan struct{}
	// Node is the name of the node, StateDir where its state is kept.
	Node, StateDir string
	// Client is for evictions, taints and cordons; nil: no API server.
	Client kubernetes.Interface
	// Conditions maintains the conditions of the Node; nil: no conditions are written.
	Conditions *nodecondition.Keeper
	// OwnsNode: conditions are removed from the Node also if they are off. Else nothing is written then.
	OwnsNode bool
	// ActionsClient is used for actions in place of Client, if it is set.
	ActionsClient kubernetes.Interface
	// Outputs are where alerts go.
	Outputs Outputs
	// Event receives events; it must not block. Nil: no events.
	Event kubeoutputs.Record
	// Record keeps an action in the history; it must not wait. Nil: it is not kept.
	Record func(alert.Alert, alert.Action)
	// Changed is called with the UID of a pod whose alerts have changed, empty for the node; it returns at once.
	Changed func(types.UID)
	// RestartContainer and RestartKubelet do these actions; nil: not possible, and Why gives the
	// reason.
	RestartContainer func(r *engine.ActionRequest, reason string) error
	RestartKubelet   func(ctx context.Context, reason string) error
	Why              map[ruleset.ActionKind]string
	Registerer       prometheus.Registerer // nil: no metrics
	Logger           *slog.Logger
}

// Alerting is an engine with its outputs and actions. Make it with [New].
type Alerting struct {
	*engine.Engine
	config Config
	log    *slog.Logger
	runs   []func(context.Context) error
	// files is a digest of the files of the rules in force. Only follow uses it once it runs.
	files [sha256.Size]byte
}

// New makes an engine, its outputs and its actor. New starts nothing: see [Alerting.Run].
func New(config Config, p Process) (*Alerting, error) {
	a := &Alerting{config: config, log: cmp.Or(p.Logger, slog.New(slog.DiscardHandler))}
	a.files = a.look() // before they are read: a file that changes meanwhile is read again
	set, err := config.Load()
	if err != nil {
		return nil, err
	}
	metrics := deliver.NewMetrics()
	outputs, err := a.outputs(&p, metrics)
	if err != nil {
		return nil, err
	}
	actor, err := a.actor(&p)
	if err != nil {
		return nil, err
	}
	a.Engine, err = engine.New(engine.Options{
		Source: p.Source, Audit: p.Audit, Guard: p.Guard, Kubelet: p.Kubelet, Ready: p.Ready, Set: set, Node: p.Node,
		StateFile: filepath.Join(p.StateDir, alertsFile), Outputs: append(outputs, actor), Actor: actor,
		Changed: p.Changed, Registerer: p.Registerer, Logger: a.log,
	})
	if err != nil {
		return nil, fmt.Errorf("alerting: %w", err)
	}
	if p.Registerer != nil {
		p.Registerer.MustRegister(metrics)
	}
	a.runs = append(a.runs, a.follow)
	return a, nil
}

// Run evaluates, delivers and acts until ctx ends. Run may be called once.
func (a *Alerting) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The engine ends last: it stores what outputs deliver until they end.
	evaluating, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	evaluated := make(chan error, 1)
	go func() {
		defer cancel() // it does not end by itself
		evaluated <- a.Engine.Run(evaluating)
	}()
	var running sync.WaitGroup
	results := make([]error, len(a.runs))
	for i, run := range a.runs {
		running.Go(func() {
			defer cancel() // no output ends by itself
			results[i] = run(ctx)
		})
	}
	running.Wait()
	end()
	return errors.Join(append(results, <-evaluated)...)
}

// runner is an output that has something to do.
type runner interface {
	Run(context.Context) error
}

func (a *Alerting) outputs(p *Process, metrics *deliver.Metrics) ([]engine.Output, error) {
	outputs, err := p.Outputs.receivers(receiverOptions{node: p.Node, url: a.config.ExternalURL, metrics: metrics, log: a.log})
	if err != nil {
		return nil, err
	}
	if p.Outputs.Events && p.Event != nil {
		outputs = append(outputs, kubeoutputs.NewEvents(p.Node, p.Event))
	}
	outputs = append(outputs, kubeoutputs.NewLog(a.log))
	if p.Conditions != nil && (p.Outputs.Conditions || p.OwnsNode) {
		conditions := kubeoutputs.NewConditions(p.Conditions) // also removes conditions of an earlier run
		if p.Outputs.Conditions {
			outputs = append(outputs, conditions)
		}
	}
	for _, output := range outputs {
		if r, runs := output.(runner); runs {
			a.runs = append(a.runs, r.Run)
		}
	}
	return outputs, nil
}

func (a *Alerting) actor(p *Process) (*actions.Actor, error) {
	options := actions.Options{
		Policy: a.config.Actions, Node: p.Node, File: filepath.Join(p.StateDir, actionsFile), Event: p.Event, Record: p.Record,
		Do:  map[ruleset.ActionKind]actions.Do{ruleset.ActionWebhook: actions.Call(a.config.Actions[ruleset.ActionWebhook].SecretFile)},
		Why: p.Why, Registerer: p.Registerer, Logger: a.log,
	}
	client := p.ActionsClient
	if client == nil {
		client = p.Client
	}
	if client != nil {
		options.Do[ruleset.ActionEvict] = actions.Evict(client)
		options.Marks = actions.NodeMarks{Client: client, Node: p.Node}
	}
	if p.RestartContainer != nil {
		options.Do[ruleset.ActionRestartContainer] = actions.RestartContainer(p.RestartContainer)
	}
	if p.RestartKubelet != nil {
		options.Do[ruleset.ActionRestartKubelet] = actions.RestartKubelet(p.RestartKubelet)
	}
	actor, err := actions.New(options)
	if err != nil {
		return nil, fmt.Errorf("alerting: %w", err)
	}
	a.runs = append(a.runs, actor.Run)
	return actor, nil
}

// readable reports whether a file can be read, if there is a path.
func readable(path string) error {
	if path == "" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("alerting: %w", err)
	}
	return file.Close()
}
