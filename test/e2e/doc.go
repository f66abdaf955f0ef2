// Command e2e runs Kubernetes' own end-to-end suite against a node agent.
//
//	e2e run -agent stock -focus REGEXP -skip REGEXP   runs specs on a node of an agent: build/e2e/AGENT/ has table, JUnit and logs
//	e2e compare stock kubelet                         compares the last runs of two agents, spec by spec
//
// The suite, its runner and the program of most of its images are built from the module in suite/. Control plane, node, pods
// and specs are in namespaces of network, processes and mounts that the run creates: no address outside of them can be reached,
// and devices, processes and mounts end with them.
//
//	e2e run ─► builds what is missing
//	         ─► e2e inside, the first process of the namespaces
//	             ├─ control plane
//	             ├─ a node of package stock: containerd, kubelet, pods on a bridge
//	             └─ ginkgo ─► e2e.test, several at a time
//	         ─► removes the directory and the control groups of the node
//
// Each failed spec of an agent must have a reason in reasons.txt: a feature that the machine or the namespaces lack. A failure
// without a reason makes the command fail.
package main
