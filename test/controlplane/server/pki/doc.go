// Package pki is the certificate authority of one control plane: it signs the certificates of the
// server and of its clients.
//
// The authority is made once and kept in the data directory, so that kubeconfigs stay valid across
// restarts. Certificates are issued again whenever they are needed and live as long as the
// authority, so no renewal is needed. All functions may be called from any goroutine and any
// process.
package pki
