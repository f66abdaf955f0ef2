package manifest_test

import (
	"fmt"

	"github.com/statusd/statusd/internal/node/manifest"
)

func ExampleDecode() {
	data := []byte(`
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: web, image: "nginx:1.29"}
---
apiVersion: v1
kind: Pod
metadata: {name: db}
spec:
  containers:
  - {name: db, imagee: "postgres:18"}
`)
	pods, problems := manifest.Decode("/etc/manifests/shop.yaml", data, "node-1")
	for _, p := range pods {
		fmt.Printf("line %d defines %s/%s\n", p.Line, p.Pod.Namespace, p.Pod.Name)
	}
	for _, p := range problems {
		fmt.Println(p.Error())
	}
	// Output:
	// line 4 defines default/web-node-1
	// /etc/manifests/shop.yaml:14: spec.containers[0].imagee: unknown field: a Pod has none of this name here (names are case-sensitive)
}
