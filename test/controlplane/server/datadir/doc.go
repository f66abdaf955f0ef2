// Package datadir is the directory that holds all that a control plane keeps: who may use it, what
// lies where, and how a file gets there whole.
//
// A server opens the directory with Open, which takes a lock that the kernel releases when the
// process ends, however it ends; so a directory never stays locked after kill -9. The kubeconfig
// sub-command reads beside a running server and takes no lock: every file is put in place by one
// rename, so a reader sees the old content or the new, never a part.
package datadir
