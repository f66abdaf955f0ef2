// Command guardfleet runs the guards of 50 nodes against a real API server and counts how often they restart kubelets: make guard-fleet.
//
// The nodes are stock-like: each has a lease that is renewed as a kubelet does it, /healthz, and a process that a guard can restart. The guards
// are those of statusd observe, with their requests to the API server. There are two fleets with an API server each, one whose guards share the
// slots of the cluster, and one without. Each goes through the same troubles: a webhook that refuses every write, an API server that is frozen, a
// kubelet that renews no lease, and one that ends soon after each start.
package main
