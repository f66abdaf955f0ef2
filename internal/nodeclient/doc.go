// Package nodeclient reaches the kubelet's server and the container runtime of this machine. Guard, audit and repairs use it, so that certificates,
// tokens and sockets are read in one way.
package nodeclient
