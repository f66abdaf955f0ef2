// Command containers is make run-containers: a node of statusd on its own containerd, with images made by hand and a control plane. All files are in one directory,
// all processes in namespaces of their own, and both end with the command.
package main
