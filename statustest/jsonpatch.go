package statustest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// operation is a step of a JSON patch (RFC 6902). Paths go through objects only, not through lists.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// testedUID returns the UID that a patch tests, empty if it tests none.
func testedUID(operations []operation) types.UID {
	for _, o := range operations {
		if uid, ok := o.Value.(string); ok && o.Op == "test" && o.Path == "/metadata/uid" {
			return types.UID(uid)
		}
	}
	return ""
}

// applyOperations returns the patched pod.
func applyOperations(pod *v1.Pod, operations []operation) (*v1.Pod, error) {
	before, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := json.Unmarshal(before, &object); err != nil {
		return nil, err
	}
	for _, o := range operations {
		if err := o.apply(object); err != nil {
			// As the server answers: without a field that would be at fault.
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", podResource, pod.Name, err.Error(), 0, false)
		}
	}
	after, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return changedBy(pod, after)
}

func (o operation) apply(object map[string]any) error {
	names := strings.Split(strings.TrimPrefix(o.Path, "/"), "/")
	last := len(names) - 1
	for _, name := range names[:last] {
		inner, ok := object[name].(map[string]any)
		if !ok {
			return fmt.Errorf("%s operation does not apply: doc is missing path: %q", o.Op, o.Path)
		}
		object = inner
	}
	switch o.Op {
	case "test":
		if !reflect.DeepEqual(object[names[last]], o.Value) {
			return fmt.Errorf("testing value %s failed", o.Path)
		}
	case "add", "replace":
		object[names[last]] = o.Value
	case "remove":
		delete(object, names[last])
	default:
		return fmt.Errorf("unexpected kind of operation: %q", o.Op)
	}
	return nil
}
