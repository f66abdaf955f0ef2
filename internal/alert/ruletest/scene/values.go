package scene

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/alert/rulefile"
)

// Strictly decodes a value of YAML as JSON, without unknown fields.
func Strictly(value any, into any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// merge puts one value over another: maps key by key, a null deletes, all else replaces.
func merge(under, over any) any {
	top, ok := over.(map[string]any)
	if !ok {
		return over
	}
	merged := map[string]any{}
	if bottom, ok := under.(map[string]any); ok {
		for k, v := range bottom {
			merged[k] = v
		}
	}
	for k, v := range top {
		if v == nil {
			delete(merged, k)
		} else {
			merged[k] = merge(merged[k], v)
		}
	}
	return merged
}

// instants replaces each text such as +5m or -30s by the time so long after or before the start.
func instants(value any, start time.Time) any {
	switch v := value.(type) {
	case map[string]any:
		replaced := make(map[string]any, len(v))
		for k, item := range v {
			replaced[k] = instants(item, start)
		}
		return replaced
	case []any:
		replaced := make([]any, len(v))
		for i, item := range v {
			replaced[i] = instants(item, start)
		}
		return replaced
	case string:
		if len(v) > 1 && (v[0] == '+' || v[0] == '-') {
			if d, err := rulefile.ParseDuration(v[1:]); err == nil {
				if v[0] == '-' {
					d = -d
				}
				return start.Add(d).Format(time.RFC3339Nano)
			}
		}
	}
	return value
}
