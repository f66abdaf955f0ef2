// Package nodedown brings a kubelet through a shutdown of its machine: it delays the shutdown at logind, has the
// Node reported as not ready, lets the kubelet end its pods for as long as that takes by its own configuration, stops
// it, and lets the shutdown go on, all within the time that logind gives. A shutdown that is canceled is
// undone: the kubelet is started again.
//
//	down := nodedown.New(nodedown.Options{Host: &logind.Host{}, Say: notReady, Stop: order.Down, Start: order.Up})
//	go down.Run(ctx)
//	down.Under() // whether the machine shuts down now
package nodedown
