package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/queryapi"
)

// completionPatience is how long a shell waits for names.
const completionPatience = time.Second

// completePods completes the names of pods.
func (q *question) completePods(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	namespace := q.inNamespace()
	var names []string
	for _, pod := range q.known(cmd.Context()) {
		if namespace == "" || pod[0] == namespace {
			names = append(names, pod[1])
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeNamespaces completes the namespaces that have pods.
func (q *question) completeNamespaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var namespaces []string
	for _, pod := range q.known(cmd.Context()) {
		namespaces = append(namespaces, pod[0])
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces), cobra.ShellCompDirectiveNoFileComp
}

// known are the namespaces and names of pods, none if no one can be asked.
func (q *question) known(ctx context.Context) (pods [][2]string) {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	q.timeout = completionPatience
	if client, err := q.node(ctx); err == nil {
		defer client.Close()
		if list, err := client.Pods(ctx, queryapi.ListOptions{}); err == nil {
			for i := range list.Items {
				pods = append(pods, [2]string{list.Items[i].Namespace, list.Items[i].Name})
			}
			return pods
		}
	}
	if q.named() {
		return nil
	}
	client, _, err := q.apiServer()
	if err != nil {
		return nil
	}
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	for i := range list.Items {
		pods = append(pods, [2]string{list.Items[i].Namespace, list.Items[i].Name})
	}
	return pods
}
