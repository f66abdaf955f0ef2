package process

import (
	"testing"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/shim"
)

// A shim does not import package runtime, and must say the same words.
func TestShimsSayWhatTheRuntimeSays(t *testing.T) {
	for ours, want := range map[any]any{
		shim.Scheme:             Scheme,
		shim.MarkerVariable:     VariablePrefix + "CONTAINER_ID",
		shim.ReasonCompleted:    runtime.ReasonCompleted,
		shim.ReasonError:        runtime.ReasonError,
		shim.ReasonStartError:   runtime.ReasonStartError,
		shim.ReasonOOMKilled:    runtime.ReasonOOMKilled,
		shim.ExitCodeStartError: runtime.ExitCodeStartError,
		shim.MaxMessageBytes:    runtime.MaxMessageBytes,
	} {
		if ours != want {
			t.Errorf("a shim says %v, the runtime %v", ours, want)
		}
	}
}
