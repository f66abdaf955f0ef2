package queryapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/localhost"
)

// maxBody is the largest body that is read.
const maxBody = 64 << 10

// readBody decodes the JSON body of a request, and answers with an error if the body is invalid. what
// names the body in errors. Content-Type must be application/json since an HTML form cannot send it.
func readBody(w http.ResponseWriter, r *http.Request, what string, into any) bool {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		fail(w, http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "%s: content type %s: want application/json", what, localhost.Short(r.Header.Get("Content-Type")))
		return false
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		fail(w, http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, "%s: the body has more than %d bytes", what, maxBody)
		return false
	}
	if err != nil {
		badRequest(w, "%s: the body ended early", what)
		return false
	}
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(into)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) { // its words are about the types of this program
		badRequest(w, "%s: %s cannot be %.100s; /openapi.json has its form", what, cmp.Or(wrong.Field, "the body"), wrong.Value)
		return false
	}
	if err != nil {
		badRequest(w, "%s: invalid body: %.300s; /openapi.json describes it", what, err)
		return false
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		badRequest(w, "%s: there is something after it", what)
		return false
	}
	return true
}
