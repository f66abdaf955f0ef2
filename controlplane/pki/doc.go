// Package pki is the certificate authority of one control plane: it vouches for the server and for
// whoever may talk to it.
//
// The authority is made once and kept in the data directory, so that kubeconfigs stay valid across
// restarts. What it signs is issued anew whenever it is needed and lives as long as the authority,
// so there is nothing to renew. All functions may be called from any goroutine and any process.
package pki
