package queryapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fail answers with a Status object, as the API server does.
func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, format string, args ...any) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: fmt.Sprintf(format, args...),
	}
	if code == http.StatusTooManyRequests {
		const seconds = 5
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: seconds}
	}
	answer(w, code, status)
}

func forbidden(w http.ResponseWriter, why string) {
	fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, "%s", why)
}

func badRequest(w http.ResponseWriter, format string, args ...any) {
	fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, format, args...)
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// The one error there can be is that the reader has gone away.
	_ = json.NewEncoder(w).Encode(value)
}
