// Command e2e judges a node agent by Kubernetes' own end-to-end suite.
//
//	e2e run -agent stock -focus REGEXP -skip REGEXP   runs specs on a node of an agent: build/e2e/AGENT/ has table, JUnit and logs
//	e2e compare stock kubelet                         compares the last runs of two agents, spec by spec
//
// The suite, the program that runs it and the program of most of its images are built from the module in suite/. Control plane,
// node, pods and specs are in namespaces of network, processes and mounts that the run makes for itself: no address outside of
// them can be reached, and devices, processes and mounts end with them.
//
//	e2e run ─► builds what is missing
//	         ─► e2e inside, the first process of the namespaces
//	             ├─ control plane
//	             ├─ a node of package stock: containerd, kubelet, pods on a bridge
//	             └─ ginkgo ─► e2e.test, several at a time
//	         ─► removes the directory and the control groups of the node
//
// An agent that fails a spec must have a reason in reasons.txt: what the machine or these surroundings lack. A failure without
// one makes the command fail.
package main
