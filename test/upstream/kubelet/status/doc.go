// Package status implements the interface of the kubelet's package k8s.io/kubernetes/pkg/kubelet/status with statusd's
// manager. The build replaces the files of that package by the files of this package, which use only statusd's public
// packages and, through package history beside this one, its history.
//
// Names and signatures are the same as in the replaced package. The methods are documented at
// [github.com/statusd/statusd/status.Manager]; comments here name the kubelet's deviations.
//
//	NewManager                    journal below the kubelet's root directory, limits of the kubelet's config
//	PodManager                    the table of pods (pods.go)
//	PodDeletionSafetyProvider     status.Safety, and status.Reclaim if it has the method of older kubelets (safety.go)
//	PodUpdateNotifier             called by the goroutine that made the change, as in the kubelet (notify.go)
//	PodStartupLatencyStateHelper, kubelet metrics    an observer of the manager (observe.go)
//	Generate…, NeedTo…            package podstatus (generate.go)
package status
