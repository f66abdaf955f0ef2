package endpoint_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/statusd/statusd/internal/alert/endpoint"
)

func ExampleEndpoint_Post() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "got ", r.URL.Path)
	}))
	defer server.Close()
	receiver, err := endpoint.New(endpoint.Options{URL: server.URL + "/prefix"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer receiver.Close()
	answer, err := receiver.Post(context.Background(), "/api/v2/alerts", nil, []byte("[]"))
	fmt.Println(string(answer), err)
	// Output: got /prefix/api/v2/alerts <nil>
}
