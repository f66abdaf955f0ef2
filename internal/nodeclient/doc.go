// Package nodeclient connects to the kubelet's server and the container runtime of this machine. Guard, audit and repairs share it, so that
// certificates, tokens and sockets are read in one way.
package nodeclient
