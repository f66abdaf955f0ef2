// Package accounts creates in each namespace the objects that pods of an ordinary cluster need: the
// service account "default" and the config map "kube-root-ca.crt" with the certificate of the
// authority.
//
// In a cluster two controllers of kube-controller-manager do this. Without the service account the
// ServiceAccount admission plugin refuses every pod of the namespace, and without the config map
// its kube-api-access volume cannot be filled.
package accounts
