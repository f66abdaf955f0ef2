package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// maxPodFile is the largest file that explain reads: some thousand pods, as kubectl get pods -A -o yaml prints them.
const maxPodFile = 64 << 20

// readPods reads the pods of a file: each document is a pod, or a list of pods.
func readPods(file string, in io.Reader) ([]*v1.Pod, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxPodFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxPodFile:
		return nil, fmt.Errorf("%s: more than %d MiB; explain fewer pods at once", file, maxPodFile>>20)
	}
	var pods []*v1.Pod
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			document, err = yaml.YAMLToJSON(document)
		}
		if err == nil && string(document) != "null" {
			err = addPods(&pods, document)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if len(pods) == 0 {
		return nil, fmt.Errorf("%s: no pod in the file; explain takes pods and lists of them, as kubectl get pods -o yaml prints them", file)
	}
	return pods, nil
}

// addPods adds the pod of an object, or the pods of a list.
func addPods(pods *[]*v1.Pod, object []byte) error {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(object, &kind); err != nil {
		return err
	}
	switch {
	case kind.APIVersion == "v1" && kind.Kind == "Pod":
		pod := &v1.Pod{}
		if err := json.Unmarshal(object, pod); err != nil {
			return err
		}
		if pod.Name == "" {
			return errors.New("the pod has no metadata.name")
		}
		*pods = append(*pods, pod)
	case kind.APIVersion == "v1" && kind.Kind == "List":
		var list struct{ Items []json.RawMessage }
		if err := json.Unmarshal(object, &list); err != nil {
			return err
		}
		for i, item := range list.Items {
			if err := addPods(pods, item); err != nil {
				return fmt.Errorf("items[%d]: %w", i, err)
			}
		}
	case kind.APIVersion == "v1" && kind.Kind == "PodList": // its items have no kind
		var list v1.PodList
		if err := json.Unmarshal(object, &list); err != nil {
			return err
		}
		for i := range list.Items {
			*pods = append(*pods, &list.Items[i])
		}
	default:
		return fmt.Errorf("want objects of kind Pod or List, apiVersion v1, got kind %q, apiVersion %q", kind.Kind, kind.APIVersion)
	}
	return nil
}
