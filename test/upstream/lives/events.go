package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// takeEvents prints the events of a pod, deletes them, and returns their kinds in order, each once.
func takeEvents(ctx context.Context, client kubernetes.Interface, pod string) ([]string, error) {
	list, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod})
	if err != nil {
		return nil, err
	}
	var kinds []string
	for _, e := range list.Items {
		fmt.Printf("      %s %s %q\n", e.Type, e.Reason, e.Message)
		kinds = append(kinds, e.Type+" "+e.Reason)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds), client.CoreV1().Events(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

func writeEvents(file string, kinds []string) error {
	return os.WriteFile(file, []byte(strings.Join(append(kinds, ""), "\n")), 0o644)
}

func readEvents(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' }), err
}

// eventCells ends the row of a life: which kinds of events both agents have made, and each alone.
func eventCells(kubelet, statusd []string) string {
	var both, left, right []string
	for _, kind := range kubelet {
		if slices.Contains(statusd, kind) {
			both = append(both, kind)
		} else {
			left = append(left, kind)
		}
	}
	for _, kind := range statusd {
		if !slices.Contains(kubelet, kind) {
			right = append(right, kind)
		}
	}
	return fmt.Sprintf(" %s | %s | %s |\n", kindList(both), kindList(left), kindList(right))
}

func kindList(kinds []string) string {
	var words []string
	for _, kind := range kinds {
		words = append(words, strings.TrimPrefix(strings.TrimPrefix(kind, "Normal "), "Warning "))
	}
	return strings.Join(words, ", ")
}
