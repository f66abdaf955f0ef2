// Package stock runs a node of the stock kubelet for tests and demonstrations: Debian's containerd and
// runc, the kubelet that test/upstream/kubernetes.sh builds, and the API server of test/controlplane/server/.
//
// The node's processes live in their own namespaces of processes and mounts. The program that started
// the node stays outside: it sees the processes by their numbers and the node's directory by its path,
// and may be a plain Go test.
//
//	Run ─► init, the first process of the namespaces: collects orphans; all processes end with it
//	        ├─ containerd ─► shims ─► containers
//	        ├─ kubelet
//	        └─ what Node.Start runs beside them
//
// Each node has its own ports, directories, control groups and images, so that several nodes may run
// at a time. [Node.Close] removes all of it; if the program is killed, the kernel ends the processes,
// and the directory and empty control groups are left.
package stock
