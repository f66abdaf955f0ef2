package collect_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/statusd/statusd/internal/guard/collect"
)

func Example() {
	kubelet := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	defer kubelet.Close()
	collector, err := collect.New(collect.Options{Healthz: kubelet.URL + "/healthz"})
	if err != nil {
		panic(err)
	}
	defer collector.Close()
	evidence := collector.Collect(context.Background())
	fmt.Println("healthz:", evidence.Healthz.Value.Text)
	fmt.Println("lease:", evidence.Lease.Why)
	// Output:
	// healthz: ok
	// lease: not configured
}
