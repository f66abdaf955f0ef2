// Package certs gives a node its credentials: a client certificate of the cluster, requested
// with a bootstrap token, and renewed before it expires.
//
// [Obtain] makes a key, requests a certificate for it from the signer of kubelets' client
// certificates, waits until the request is approved and signed, and writes a kubeconfig that uses
// it. [Renew] requests a new one when 70 to 90 percent of the lifetime are over. Keys and
// certificates are kept in one directory; the newest is always at the same path.
//
// # Concurrency
//
// Functions block until their context ends or their work is done, and leave nothing running.
package certs
