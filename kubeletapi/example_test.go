package kubeletapi_test

import (
	"fmt"

	"github.com/statusd/statusd/kubeletapi"
)

// What a client needs a right for, to read the logs of a container and to see the pods.
func ExampleAttributesOf() {
	for _, path := range []string{"/containerLogs/default/web/main", "/pods"} {
		fmt.Println(path, kubeletapi.AttributesOf("GET", path))
	}
	// Output:
	// /containerLogs/default/web/main {get [proxy]}
	// /pods {get [pods proxy]}
}
