package webhook_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/alert/webhook"
)

// A receiver checks the signature before it believes a message.
func ExampleVerify() {
	secret := []byte("s3cret")
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err == nil {
			err = webhook.Verify(r.Header, secret, body, time.Now(), 5*time.Minute)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
		}
	}
	body := `{"version": "1"}`
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	webhook.Sign(request.Header, secret, []byte(body), time.Now())
	answer := httptest.NewRecorder()
	handler(answer, request)
	fmt.Println(answer.Code)
	// Output: 200
}
