// Command containers is make run-containers: a node of statusd on a containerd of its own, with images made by hand and a control plane beside it. Everything is in
// one directory and in namespaces of its own, and ends with the command.
package main
