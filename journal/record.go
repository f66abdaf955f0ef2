package journal

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// A record on disk is an envelope around JSON:
//
//	"JR" | envelope version 1 | 0 | payload length, 4 bytes | CRC-32C, 4 bytes | payload
//
// Numbers are big-endian. The checksum covers bucket, key, the first eight bytes and the
// payload, so that a record found under another key is as wrong as one with a flipped bit.
const (
	envelopeMagic   = "JR\x01\x00"
	envelopeHeader  = 12
	envelopeSumFrom = 8 // where the checksum is stored
)

func seal(bucket, key string, payload []byte) []byte {
	record := make([]byte, envelopeHeader, envelopeHeader+len(payload))
	copy(record, envelopeMagic)
	binary.BigEndian.PutUint32(record[4:], uint32(len(payload)))
	binary.BigEndian.PutUint32(record[envelopeSumFrom:], envelopeSum(bucket, key, record[:envelopeSumFrom], payload))
	return append(record, payload...)
}

// unseal returns the payload of the record. Bytes after it are left alone, so that a
// record can also be recognised in the middle of a damaged file.
func unseal(bucket, key string, record []byte) ([]byte, error) {
	if len(record) < envelopeHeader || string(record[:4]) != envelopeMagic {
		return nil, damaged("record %s/%s does not begin as a record", bucket, key)
	}
	length := uint64(binary.BigEndian.Uint32(record[4:]))
	if uint64(len(record)) < envelopeHeader+length {
		return nil, damaged("record %s/%s is cut short", bucket, key)
	}
	payload := record[envelopeHeader : envelopeHeader+length]
	if binary.BigEndian.Uint32(record[envelopeSumFrom:]) != envelopeSum(bucket, key, record[:envelopeSumFrom], payload) {
		return nil, damaged("record %s/%s has a wrong checksum", bucket, key)
	}
	return payload, nil
}

func envelopeSum(bucket, key string, header, payload []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // the package keeps one copy
	name := binary.BigEndian.AppendUint16(nil, uint16(len(bucket)))
	name = append(name, bucket...)
	name = binary.BigEndian.AppendUint16(name, uint16(len(key)))
	name = append(name, key...)
	sum := crc32.Update(0, table, name)
	sum = crc32.Update(sum, table, header)
	return crc32.Update(sum, table, payload)
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// The payloads. Their JSON names are part of the format.
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
		Status    v1.PodStatus `json:"status"`
	}
	terminationRecord struct {
		Pod   types.UID                   `json:"pod"`
		State v1.ContainerStateTerminated `json:"state"`
	}
)

// encode returns the sealed record of a value of tables.
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
	return seal(string(k.kind), k.key, data), nil
}

// decode is the way back. Its error wraps ErrDamaged.
func decode(k recordKey, record []byte) (any, error) {
	payload, err := unseal(string(k.kind), k.key, record)
	if err != nil {
		return nil, err
	}
	switch k.kind {
	case allocations:
		r, err := fromJSON[allocationRecord](k, payload)
		return podstatus.Allocation(r), err
	case resizeStatuses:
		r, err := fromJSON[ResizeStatus](k, payload)
		return r, err
	case resizeConditions:
		r, err := fromJSON[conditionsRecord](k, payload)
		return podstatus.ResizeConditions(r), err
	case finals:
		r, err := fromJSON[finalRecord](k, payload)
		return podstatus.Final(r), err
	case terminations:
		r, err := fromJSON[terminationRecord](k, payload)
		return termination{pod: r.Pod, state: r.State}, err
	default:
		return nil, damaged("record %s/%s is in a bucket that this format does not have", k.kind, k.key)
	}
}

func fromJSON[V any](k recordKey, payload []byte) (value V, err error) {
	if err := json.Unmarshal(payload, &value); err != nil {
		return value, damaged("record %s/%s: %v", k.kind, k.key, err)
	}
	return value, nil
}
