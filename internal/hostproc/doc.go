// Package hostproc reads the processes of a host from its /proc, which may be mounted elsewhere, and finds the kubelet's
// process. The guard and the audit use the same [Finder], so that both judge the same process.
//
//	kubelet := hostproc.Finder{Root: "/host", Name: "kubelet"}
//	process, err := kubelet.Find(nil)
//	if err == nil && process.Exists() { fmt.Println(process.PID, process.Stopped()) }
//
// The package starts no goroutine. A [Finder] is a value; its methods may be called from any goroutine.
package hostproc
