package nodecerts

import (
	"context"
	"fmt"
	"log"
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Approver approves the serving certificates of nodes. The zero value is of no use.
type Approver struct {
	client kubernetes.Interface
	queue  workqueue.TypedRateLimitingInterface[string] // names of requests
}

// New makes an approver. New starts nothing.
func New(client kubernetes.Interface) *Approver {
	return &Approver{
		client: client,
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, 10*time.Second)),
	}
}

// Run approves until ctx ends. A request that may not be approved yet is looked at again: a node may
// request its certificate before its Node object lists its addresses.
func (a *Approver) Run(ctx context.Context) error {
	selector := fields.OneTermEqualSelector("spec.signerName", certificates.KubeletServingSignerName).String()
	factory := informers.NewSharedInformerFactoryWithOptions(a.client, 0, informers.WithTweakListOptions(
		func(o *metav1.ListOptions) { o.FieldSelector = selector }))
	requests := factory.Certificates().V1().CertificateSigningRequests().Informer()
	if _, err := requests.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: a.enqueue}); err != nil {
		return fmt.Errorf("serving certificates: %w", err)
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	stop := context.AfterFunc(ctx, a.queue.ShutDown)
	defer stop()
	for a.next(ctx) {
	}
	return nil
}

func (a *Approver) enqueue(object any) {
	if request, ok := object.(*certificates.CertificateSigningRequest); ok && len(request.Status.Conditions) == 0 {
		a.queue.Add(request.Name)
	}
}

func (a *Approver) next(ctx context.Context) bool {
	name, closed := a.queue.Get()
	if closed {
		return false
	}
	defer a.queue.Done(name)
	err := a.approve(ctx, name)
	if err == nil || ctx.Err() != nil {
		a.queue.Forget(name)
		return true
	}
	if a.queue.NumRequeues(name) == 0 {
		log.Printf("serving certificate request %s is not approved: %v", name, err)
	}
	a.queue.AddRateLimited(name)
	return true
}

// approve returns nil if there is nothing left to do for the request.
func (a *Approver) approve(ctx context.Context, name string) error {
	requests := a.client.CertificatesV1().CertificateSigningRequests()
	request, err := requests.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && len(request.Status.Conditions) > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	nodeName, err := nodeOf(request)
	if err != nil {
		return err
	}
	node, err := a.client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := check(request, node); err != nil {
		return err
	}
	request.Status.Conditions = append(request.Status.Conditions, certificates.CertificateSigningRequestCondition{
		Type:    certificates.CertificateApproved,
		Status:  v1.ConditionTrue,
		Reason:  "NodeServingCertificate",
		Message: "The node requests its own name and addresses.",
	})
	_, err = requests.UpdateApproval(ctx, name, request, metav1.UpdateOptions{})
	return err
}
