package queryapi_test

import (
	"encoding/json"
	"fmt"

	"github.com/statusd/statusd/internal/view"
)

// A program that reads the query API decodes its answers into the types of this package.
func ExamplePodList() {
	answer := `{"revision":"17","items":[{"namespace":"default","name":"web","state":"NotReady","status":"Running","why":"Pod default/web is not Ready."}]}`
	var list view.PodList
	if err := json.Unmarshal([]byte(answer), &list); err != nil {
		fmt.Println(err)
		return
	}
	for _, pod := range list.Items {
		fmt.Println(pod.Name, pod.State, pod.Why)
	}
	// Output: web NotReady Pod default/web is not Ready.
}
