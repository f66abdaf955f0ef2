package apiobjects_test

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/statusd/statusd/internal/node/volume"
	"github.com/statusd/statusd/internal/node/volume/apiobjects"
)

// Volumes read the config maps of the API.
func Example() {
	client := fake.NewClientset(&v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Data:       map[string]string{"index.html": "hello"},
	})
	objects := apiobjects.New(client, nil)
	found, err := volume.GetConfigMap(context.Background(), objects, "default", "web", false)
	if err != nil {
		panic(err)
	}
	fmt.Println(found.Data["index.html"])
	// Output: hello
}
