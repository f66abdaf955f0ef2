package journal

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// The records. Their JSON names are part of the format.
type (
	allocationRecord struct {
		Containers map[string]v1.ResourceRequirements `json:"containers,omitempty"`
		PodLevel   *v1.ResourceRequirements           `json:"podLevel,omitempty"`
	}
	conditionsRecord struct {
		Pending    *v1.PodCondition `json:"pending,omitempty"`
		InProgress *v1.PodCondition `json:"inProgress,omitempty"`
	}
	finalRecord struct {
		Namespace string       `json:"namespace"`
		Name      string       `json:"name"`
		Version   uint64       `json:"version"`
		Finished  bool         `json:"finished"`
		Vanished  bool         `json:"vanished,omitempty"`
		Status    v1.PodStatus `json:"status"`
	}
	terminationRecord struct {
		Pod   types.UID                   `json:"pod"`
		State v1.ContainerStateTerminated `json:"state"`
	}
)

// encode returns the record of a value of tables.
func encode(k recordKey, value any) ([]byte, error) {
	var payload any
	switch v := value.(type) {
	case podstatus.Allocation:
		payload = allocationRecord(v)
	case podstatus.ResizeConditions:
		payload = conditionsRecord(v)
	case podstatus.Final:
		payload = finalRecord(v)
	case termination:
		payload = terminationRecord{Pod: v.pod, State: v.state}
	default:
		payload = v
	}
	data, err := json.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("journal: encode %s/%s: %w", k.kind, k.key, err)
	}
	return data, nil
}

// decode is the way back. Its error wraps ErrDamaged.
func decode(k recordKey, record []byte) (any, error) {
	switch k.kind {
	case allocations:
		r, err := fromJSON[allocationRecord](k, record)
		return podstatus.Allocation(r), err
	case resizeConditions:
		r, err := fromJSON[conditionsRecord](k, record)
		return podstatus.ResizeConditions(r), err
	case finals:
		r, err := fromJSON[finalRecord](k, record)
		return podstatus.Final(r), err
	case terminations:
		r, err := fromJSON[terminationRecord](k, record)
		return termination{pod: r.Pod, state: r.State}, err
	default:
		return nil, damaged("record %s/%s is of a kind that this format does not have", k.kind, k.key)
	}
}

func fromJSON[V any](k recordKey, record []byte) (value V, err error) {
	if err := json.Unmarshal(record, &value); err != nil {
		return value, damaged("record %s/%s: %v", k.kind, k.key, err)
	}
	return value, nil
}
