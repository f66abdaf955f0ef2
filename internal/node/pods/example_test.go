package pods_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/node/pods"
)

// The API knows a static pod by its mirror, which has another UID.
func Example() {
	static := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "etcd-node", UID: "static",
		Annotations: map[string]string{"kubernetes.io/config.source": "file"}}}
	mirror := static.DeepCopy()
	mirror.UID = "mirror"
	mirror.Annotations = map[string]string{"kubernetes.io/config.mirror": "static"}

	table := pods.New()
	table.Set(static)
	table.Set(mirror)
	found, ok := table.MirrorOf(static)
	fmt.Println(found.UID, ok)
	fmt.Println(table.TranslateUID("mirror"))
	// Output:
	// mirror true
	// static
}
