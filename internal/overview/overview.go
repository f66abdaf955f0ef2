package overview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/view"
)

// Bounds of a question to all observers.
const (
	// InFlight is the maximum number of concurrent queries.
	InFlight = 64
	// PerNode is the timeout of one query.
	PerNode = 5 * time.Second

	maxAnswer = 256 << 10
	pageSize  = 500
)

// Where the observers of deploy/observe are.
const (
	Namespace = "statusd"
	selector  = "app.kubernetes.io/name=statusd-observe"
	portName  = "metrics"
	port      = 10266
	// Path is where an observer serves its overview.
	Path = "/overview"
)

// Node has the facts of one node.
type Node struct {
	Name string `json:"name"`
	// Ready is the condition Ready of the Node: True, False, Unknown; empty if the condition or the Node does not exist.
	Ready v1.ConditionStatus `json:"ready,omitempty"`
	// Healthy and Truthful are the conditions KubeletHealthy and StatusTruthful, as their writers left them.
	Healthy  v1.ConditionStatus `json:"kubeletHealthy,omitempty"`
	Truthful v1.ConditionStatus `json:"statusTruthful,omitempty"`
	// Pod is the queried observer, empty if the node has none.
	Pod string `json:"pod,omitempty"`
	// Overview is the answer; without one Problem has the reason.
	Overview *view.Overview `json:"overview,omitempty"`
	Problem  string         `json:"problem,omitempty"`
}

// Gather queries the observers of all nodes, in the namespace of the observers. Gather returns an error if listing nodes or pods
// fails: without the lists nothing is known.
func Gather(ctx context.Context, client kubernetes.Interface, namespace string) ([]Node, error) {
	nodes, err := listNodes(ctx, client)
	if err != nil {
		return nil, err
	}
	pods, err := observers(ctx, client, namespace)
	if err != nil {
		return nil, err
	}
	for name := range pods { // of a Node that was deleted under a running kubelet
		if _, known := nodes[name]; !known {
			nodes[name] = &Node{Name: name}
		}
	}
	var asked sync.WaitGroup
	slots := make(chan struct{}, InFlight)
	for name, node := range nodes {
		pod := pods[name]
		if pod == nil {
			node.Problem = "no observer runs there"
			continue
		}
		node.Pod = pod.Name
		asked.Go(func() {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				node.ask(ctx, client, pod)
			case <-ctx.Done():
				node.Problem = "not asked: the time is over"
			}
		})
	}
	asked.Wait()
	list := make([]Node, 0, len(nodes))
	for _, node := range nodes {
		list = append(list, *node)
	}
	Sort(list)
	return list, nil
}

func listNodes(ctx context.Context, client kubernetes.Interface) (map[string]*Node, error) {
	nodes := map[string]*Node{}
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := client.CoreV1().Nodes().List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		for i := range page.Items {
			item := &page.Items[i]
			node := &Node{Name: item.Name}
			for _, c := range item.Status.Conditions {
				switch c.Type {
				case v1.NodeReady:
					node.Ready = c.Status
				case "KubeletHealthy":
					node.Healthy = c.Status
				case "StatusTruthful":
					node.Truthful = c.Status
				}
			}
			nodes[item.Name] = node
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nodes, nil
		}
	}
}

// observers returns the observer pods by node. While a DaemonSet is updated a node may have two; a running one is preferred.
func observers(ctx context.Context, client kubernetes.Interface, namespace string) (map[string]*v1.Pod, error) {
	pods := map[string]*v1.Pod{}
	options := metav1.ListOptions{Limit: pageSize, LabelSelector: selector}
	for {
		page, err := client.CoreV1().Pods(namespace).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list the observers in namespace %s: %w", namespace, err)
		}
		for i := range page.Items {
			pod := &page.Items[i]
			if pod.Spec.NodeName == "" {
				continue
			}
			if before := pods[pod.Spec.NodeName]; before == nil || !running(before) {
				pods[pod.Spec.NodeName] = pod
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return pods, nil
		}
	}
}

func running(pod *v1.Pod) bool {
	return pod.Status.PodIP != "" && pod.DeletionTimestamp == nil && pod.Status.Phase != v1.PodFailed && pod.Status.Phase != v1.PodSucceeded
}

// ask reads the overview of one node through the API server's proxy.
func (n *Node) ask(ctx context.Context, client kubernetes.Interface, pod *v1.Pod) {
	if pod.Status.PodIP == "" {
		n.Problem = "its observer has not started"
		return
	}
	ctx, cancel := context.WithTimeout(ctx, PerNode)
	defer cancel()
	body, err := client.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, portOf(pod), Path, nil).Stream(ctx)
	if err != nil {
		n.Problem = problem(ctx, err)
		return
	}
	defer body.Close()
	overview := &view.Overview{}
	if err := json.NewDecoder(io.LimitReader(body, maxAnswer)).Decode(overview); err != nil {
		n.Problem = problem(ctx, fmt.Errorf("its answer cannot be read: %w", err))
		return
	}
	if overview.Node != n.Name {
		n.Problem = fmt.Sprintf("its observer answers for node %.253q", overview.Node)
		return
	}
	n.Overview = overview
}

// problem says why an observer did not answer.
func problem(ctx context.Context, err error) string {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "its observer does not answer in time"
	case apierrors.IsForbidden(err):
		return "you may not ask its observer: the right to get pods/proxy is missing"
	case apierrors.IsNotFound(err):
		return "its observer serves no overview: it is older, or just ended"
	}
	return "its observer does not answer: " + err.Error()
}

// portOf is the port of a pod's overview. The proxy requires a number.
func portOf(pod *v1.Pod) string {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == portName {
				return strconv.Itoa(int(p.ContainerPort))
			}
		}
	}
	return strconv.Itoa(port)
}
