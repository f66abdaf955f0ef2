package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Annotations by which a pod in pods/ says how it wants to be recorded.
const (
	annotationFor      = "lives/for"      // how long after its creation it is deleted, if it has not ended before
	annotationManifest = "lives/manifest" // it is a static pod
)

// namespace is where all recorded pods live.
const namespace = "lives"

// life is a pod that is to be recorded.
type life struct {
	pod    *v1.Pod
	lasts  time.Duration // zero: until it has ended by itself
	static bool
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
		return nil, fmt.Errorf("no pod in pods/ is called %q; run in rival/lives", names)
	}
	return lives, nil
}

func readLife(file string) (life, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return life{}, err
	}
	pod := &v1.Pod{}
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		return life{}, err
	}
	pod.Namespace = namespace
	l := life{pod: pod, static: pod.Annotations[annotationManifest] == "true"}
	if text, ok := pod.Annotations[annotationFor]; ok {
		if l.lasts, err = time.ParseDuration(text); err != nil {
			return life{}, fmt.Errorf("annotation %s: %w", annotationFor, err)
		}
	}
	return l, nil
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
