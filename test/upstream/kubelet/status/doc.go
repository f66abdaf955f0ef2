// Package status is statusd's manager behind the interface that the kubelet expects of its package
// k8s.io/kubernetes/pkg/kubelet/status. The build puts the files of this package in the place of that package's; they use
// nothing of statusd but its public packages.
//
// Names and signatures are those that the kubelet and its tests call. What each method does is documented at
// [github.com/statusd/statusd/status.Manager]; comments here say where the kubelet needs something else.
//
//	NewManager                    journal below the kubelet's root directory, limits of the kubelet's config
//	PodManager                    the table of pods (pods.go)
//	PodDeletionSafetyProvider     status.Safety, and status.Reclaim if it has the method of older kubelets (safety.go)
//	PodUpdateNotifier             called by the goroutine that made the change, as in the kubelet (notify.go)
//	PodStartupLatencyStateHelper, kubelet metrics    an observer of the manager (observe.go)
//	Generate…, NeedTo…            package podstatus (generate.go)
package status
