// Command guardfleet runs the guards of 50 nodes against a real API server and counts how often they restart kubelets: make guard-fleet.
//
// The nodes are simulated: each has a lease that is renewed as a kubelet does it, /healthz, and a process that a guard can restart. The guards
// are the guards of statusd observe, with their requests to the API server. There are two fleets with an API server each: in one fleet the guards
// share the slots of the cluster, in the other they do not. Each goes through the same faults: a webhook that refuses every write, an API server
// that is frozen, a kubelet that does not renew its lease, and a kubelet that ends soon after each start.
package main
