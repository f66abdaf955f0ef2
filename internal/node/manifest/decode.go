package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// A Definition is a static pod and where it is defined.
type Definition struct {
	Pod  *v1.Pod
	File string
	Line int // of the pod's name, counted from 1
}

// Decode reads the static pods that a manifest defines for a node: YAML or JSON, one or
// several documents. A document with problems yields no pod; the other documents do. The
// problems are in the order of their lines. file is the manifest's path: it appears in the
// problems and is part of the pods' identity. Decode reads neither disk nor clock, so it can
// check a manifest before it is installed; for that reason the pods have no
// [podstatus.SeenAnnotation].
func Decode(file string, data []byte, node string) ([]Definition, []Problem) {
	var definitions []Definition
	var problems []Problem
	documents := split(data)
	if len(documents) == 0 {
		return nil, []Problem{{File: file, Reason: "no pod in it; remove the file to remove its pods"}}
	}
	for _, d := range documents {
		pod, wrong := d.decode(file, node)
		if len(wrong) == 0 {
			definitions = append(definitions, Definition{pod, file, d.lineOf("metadata.name")})
		}
		for _, p := range wrong {
			p.File = file
			problems = append(problems, p)
		}
	}
	slices.SortFunc(problems, Problem.Compare)
	return definitions, problems
}

func (d *document) decode(file, node string) (*v1.Pod, []Problem) {
	if problems := d.parse(); len(problems) > 0 {
		return nil, problems
	}
	pod, problems := d.strictPod()
	if len(problems) > 0 {
		return nil, problems
	}
	forgetServerFields(pod)
	uid, err := contentUID(pod, node, file)
	if err != nil {
		return nil, []Problem{{Line: d.line, Reason: err.Error()}}
	}
	setDefaults(pod)
	for _, e := range validate(pod, node) {
		problems = append(problems, Problem{Line: d.lineOf(e.Field), Field: e.Field, Reason: e.ErrorBody()})
	}
	identify(pod, uid, node)
	return pod, problems
}

// strictPod decodes the document as a Pod. Fields that a Pod does not have are problems.
func (d *document) strictPod() (*v1.Pod, []Problem) {
	data, err := yaml.YAMLToJSON(d.text)
	if err != nil {
		return nil, []Problem{{Line: d.line, Reason: err.Error()}}
	}
	var kind metav1.TypeMeta
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, []Problem{{Line: d.line, Reason: "not an object with apiVersion and kind"}}
	}
	if kind.APIVersion != "v1" || kind.Kind != "Pod" {
		return nil, []Problem{{Line: d.lineOf("kind"), Field: "kind",
			Reason: fmt.Sprintf("is %q of apiVersion %q, but only a Pod of apiVersion v1 can be a static pod", kind.Kind, kind.APIVersion)}}
	}
	pod := &v1.Pod{}
	unknown, err := kjson.UnmarshalStrict(data, pod)
	if err != nil {
		return nil, d.misfits(data, err)
	}
	var problems []Problem
	for _, e := range unknown {
		field := ""
		if f, ok := e.(kjson.FieldError); ok {
			field = f.FieldPath()
		}
		problems = append(problems, Problem{Line: d.lineOf(field), Field: field, Reason: "unknown field: a Pod has none of this name here (names are case-sensitive)"})
	}
	return pod, problems
}

// misfits returns a problem for each value of the wrong type. The decoder reports one of them
// at most, and its field only for some types, so each value is decoded alone in an otherwise
// empty pod.
func (d *document) misfits(data []byte, whole error) []Problem {
	var content any
	if err := json.Unmarshal(data, &content); err != nil {
		return []Problem{{Line: d.line, Reason: whole.Error()}}
	}
	var problems []Problem
	var try func(value any, alone func(any) any, path string)
	try = func(value any, alone func(any) any, path string) {
		if err := decodePod(alone(withoutContent(value))); err != nil {
			problems = append(problems, Problem{Line: d.lineOf(path), Field: path, Reason: misfit(err)})
			return
		}
		switch value := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				try(value[key], func(v any) any { return alone(map[string]any{key: v}) }, join(path, key))
			}
		case []any:
			for i := range value {
				try(value[i], func(v any) any { return alone([]any{v}) }, path+"["+strconv.Itoa(i)+"]")
			}
		}
	}
	try(content, func(v any) any { return v }, "")
	if len(problems) == 0 {
		return []Problem{{Line: d.line, Reason: whole.Error()}}
	}
	return problems
}

func withoutContent(value any) any {
	switch value.(type) {
	case map[string]any:
		return map[string]any{}
	case []any:
		return []any{}
	}
	return value
}

func decodePod(content any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, &v1.Pod{})
}

// misfit describes a decoder's error in the terms of manifests, not of Go.
func misfit(err error) string {
	e, ok := err.(*json.UnmarshalTypeError)
	if !ok {
		return err.Error()
	}
	want := e.Type.String()
	switch e.Type.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		want = "a whole number"
	case reflect.String:
		want = "a string (quote it)"
	case reflect.Bool:
		want = "true or false"
	case reflect.Slice, reflect.Array:
		want = "a list"
	case reflect.Struct, reflect.Map:
		want = "an object"
	}
	return fmt.Sprintf("is of the wrong type: got %s, want %s", e.Value, want)
}

// forgetServerFields drops the fields that only an API server writes. A manifest that was
// saved from a cluster or made by a dry run may carry them.
func forgetServerFields(pod *v1.Pod) {
	pod.TypeMeta = metav1.TypeMeta{}
	pod.ResourceVersion, pod.Generation = "", 0
	pod.CreationTimestamp = metav1.Time{}
	pod.ManagedFields = nil
	pod.Status = v1.PodStatus{}
}
