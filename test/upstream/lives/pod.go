package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// Annotations by which a pod in pods/ says how it wants to be recorded.
const (
	annotationFor      = "lives/for"      // how long after its creation it is deleted, if it has not ended before
	annotationManifest = "lives/manifest" // it is a static pod
	annotationSteps    = "lives/steps"    // what happens meanwhile: see step
)

// namespace is where all recorded pods live.
const namespace = "lives"

// life is a pod that is to be recorded. Further objects of its file take part in its steps.
type life struct {
	pod    *v1.Pod
	others []runtime.Object
	lasts  time.Duration // zero: until it has ended by itself
	static bool
	steps  []step
}

// readLives reads pods/*.yaml in order; with names, only those.
func readLives(names []string) ([]life, error) {
	files, err := filepath.Glob("pods/*.yaml")
	if err != nil {
		return nil, err
	}
	var lives []life
	for _, file := range files {
		l, err := readLife(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(names) == 0 || slices.Contains(names, l.pod.Name) {
			lives = append(lives, l)
		}
	}
	if len(lives) == 0 {
		return nil, fmt.Errorf("no pod in pods/ is called %q; run in test/upstream/lives", names)
	}
	return lives, nil
}

func readLife(file string) (life, error) {
	objects, err := readObjects(file)
	if err != nil {
		return life{}, err
	}
	if len(objects) == 0 {
		return life{}, errors.New("there is nothing in it")
	}
	pod, ok := objects[0].(*v1.Pod)
	if !ok {
		return life{}, fmt.Errorf("the first object is a %T, not a pod", objects[0])
	}
	l := life{pod: pod, others: objects[1:], static: pod.Annotations[annotationManifest] == "true"}
	if text, ok := pod.Annotations[annotationFor]; ok {
		if l.lasts, err = time.ParseDuration(text); err != nil {
			return life{}, fmt.Errorf("annotation %s: %w", annotationFor, err)
		}
	}
	if l.steps, err = parseSteps(pod.Annotations[annotationSteps]); err != nil {
		return life{}, fmt.Errorf("annotation %s: %w", annotationSteps, err)
	}
	// To an agent the annotations mean nothing, and the steps of a pod that is edited would be part of its edit.
	delete(pod.Annotations, annotationSteps)
	return l, nil
}

// readObjects reads all documents of a file strictly, and puts them into the namespace.
func readObjects(file string) ([]runtime.Object, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	decoder := scheme.Codecs.UniversalDeserializer()
	var objects []runtime.Object
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(document, object.DeepCopyObject()); err != nil {
			return nil, err
		}
		if err := setNamespace(object); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

func setNamespace(object runtime.Object) error {
	meta, ok := object.(metav1.Object)
	if !ok {
		return fmt.Errorf("%T has no namespace", object)
	}
	meta.SetNamespace(namespace)
	return nil
}

// writeManifest makes the pod a static one. The file appears complete.
func writeManifest(file string, pod *v1.Pod) error {
	manifest := pod.DeepCopy()
	manifest.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	data, err := yaml.Marshal(manifest)
	if err != nil {
		return err
	}
	hidden := filepath.Join(filepath.Dir(file), "."+filepath.Base(file))
	if err := os.WriteFile(hidden, data, 0o644); err != nil {
		return err
	}
	return os.Rename(hidden, file)
}
