package alertmanager_test

import (
	"fmt"

	"github.com/statusd/statusd/internal/alert/alertmanager"
	"github.com/statusd/statusd/internal/alert/endpoint"
)

// Each instance of Alertmanager is an output of its own.
func ExampleNew() {
	for _, url := range []string{"http://alerts-0:9093", "http://alerts-1:9093/prefix"} {
		output, err := alertmanager.New(alertmanager.Options{
			Endpoint: endpoint.Options{URL: url}, Node: "node-1", ExternalURL: "https://statusd.example/node-1",
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(output.Name())
	}
	// Output:
	// alertmanager/alerts-0:9093
	// alertmanager/alerts-1:9093/prefix
}
