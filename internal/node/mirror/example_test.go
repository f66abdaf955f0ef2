package mirror_test

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/statusd/statusd/internal/node/mirror"
	"github.com/statusd/statusd/internal/node/source"
	"github.com/statusd/statusd/podstatus"
)

// The API gets a mirror of a static pod, so that kubectl shows it.
func Example() {
	client := fake.NewClientset()
	mirrors, err := mirror.New(mirror.Options{
		Client: client, NodeName: "node", NodeUID: func() types.UID { return "node-uid" },
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	created, err := client.CoreV1().Pods("kube-system").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	done := make(chan error)
	go func() { done <- mirrors.Run(ctx) }()

	static := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "etcd-node", UID: "static",
		Annotations: map[string]string{podstatus.SourceAnnotation: podstatus.SourceFile, podstatus.HashAnnotation: "static"}}}
	mirrors.Observe(source.Change{Origin: source.FromAPI, Op: source.Set}) // the API has no pods of this node
	mirrors.Observe(source.Change{Origin: source.FromFile, Op: source.Set, Pods: []*v1.Pod{static}})
	event := <-created.ResultChan()
	fmt.Println(event.Type, event.Object.(*v1.Pod).Name)
	created.Stop()
	stop()
	<-done
	// Output: ADDED etcd-node
}
