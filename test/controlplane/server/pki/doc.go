// Package pki is the certificate authority of one control plane: it signs the certificates of the
// server and of its clients.
//
// The authority is made once and kept in the data directory, so that kubeconfigs stay valid across
// restarts. What it signs is issued again whenever it is needed and lives as long as the authority,
// so there is nothing to renew. All functions may be called from any goroutine and any process.
package pki
