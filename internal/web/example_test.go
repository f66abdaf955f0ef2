package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/statusd/statusd/internal/web"
)

// The page is served beside the query API that it reads.
func ExampleHandler() {
	mux := http.NewServeMux()
	mux.Handle("GET /", web.Handler())
	server := httptest.NewServer(mux)
	defer server.Close()

	response, err := http.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	fmt.Println(response.StatusCode, response.Header.Get("Content-Type"), strings.Contains(string(page), "<title>statusd</title>"), err)
	// Output: 200 text/html; charset=utf-8 true <nil>
}
