package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/apifacts"
	"github.com/statusd/statusd/internal/text"
)

// target is the object to explain. An empty kind is a pod, or else a workload of the name.
type target struct{ kind, namespace, name string }

// target reads TYPE/NAME, TYPE NAME, NAMESPACE/POD or POD.
func (c *explainCommand) target(args []string) (target, error) {
	t := target{namespace: c.namespace, name: args[0]}
	word, name, typed := strings.Cut(args[0], "/")
	if len(args) == 2 {
		word, name, typed = args[0], args[1], true
	}
	kind, known := apifacts.Kind(strings.ToLower(word))
	switch {
	case typed && known:
		t.kind, t.name = kind, name
	case len(args) == 2:
		return t, fmt.Errorf("type %q is not known: want pod, deployment, replicaset, statefulset, daemonset, job or cronjob: %w", word, errUsage)
	case typed:
		t.namespace, t.name = word, name
	}
	if t.name == "" {
		return t, fmt.Errorf("%q has no name: %w", args[0], errUsage)
	}
	return t, nil
}

// explainObject explains an object of the API: the pod of the name, or a workload of the name, or the one pod whose name begins so.
func explainObject(ctx context.Context, client kubernetes.Interface, t target) (explain.Explanation, error) {
	now := time.Now()
	if t.kind != "" && t.kind != "Pod" {
		w, err := apifacts.Workload(ctx, client, t.kind, t.namespace, t.name, now)
		return w.Explain(), err
	}
	facts, err := apifacts.Collect(ctx, client, t.namespace, t.name, now)
	if err == nil {
		return explain.Pod(facts), nil
	}
	if !apierrors.IsNotFound(err) {
		return explain.Explanation{}, err
	}
	if t.kind == "" {
		for _, kind := range apifacts.Kinds {
			if w, err := apifacts.Workload(ctx, client, kind, t.namespace, t.name, now); err == nil {
				return w.Explain(), nil
			}
		}
	}
	list, second := client.CoreV1().Pods(t.namespace).List(ctx, metav1.ListOptions{})
	if second != nil {
		return explain.Explanation{}, err
	}
	name, err := meant(t.name, list.Items, func(pod *v1.Pod) string { return pod.Name }, err)
	if err != nil {
		return explain.Explanation{}, err
	}
	facts, err = apifacts.Collect(ctx, client, t.namespace, name, now)
	return explain.Pod(facts), err
}

// maxNamed is how many pods an error names.
const maxNamed = 5

// meant is the one name that begins as a name does which there is not. The error says what there is instead.
func meant[Pod any](name string, pods []Pod, nameOf func(*Pod) string, notFound error) (string, error) {
	var known, begin []string
	for i := range pods {
		known = append(known, nameOf(&pods[i]))
		if strings.HasPrefix(known[i], name) {
			begin = append(begin, known[i])
		}
	}
	slices.Sort(begin)
	switch nearest := text.Nearest(name, known); {
	case len(begin) == 1:
		return begin[0], nil
	case len(begin) > maxNamed:
		return "", fmt.Errorf("%w; %d pods begin with it, as %s", notFound, len(begin), strings.Join(begin[:maxNamed], ", "))
	case len(begin) > 1:
		return "", fmt.Errorf("%w; there are %s", notFound, strings.Join(begin, ", "))
	case nearest != "":
		return "", fmt.Errorf("%w; did you mean %s?", notFound, nearest)
	}
	return "", notFound
}
