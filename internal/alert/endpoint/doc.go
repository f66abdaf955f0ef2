// Package endpoint posts to one HTTP receiver: what Alertmanager and webhooks have in common.
//
// Credentials and certificates come from files, which are read again when they change. Redirects are
// refused, because they would send credentials and alerts to a host that the operator did not name. Of
// an answer only the beginning is read. Requests go through no proxy.
package endpoint
