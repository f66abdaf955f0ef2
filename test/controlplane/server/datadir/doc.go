// Package datadir is the data directory of a control plane: its lock, its layout, and atomic writes
// of its files.
//
// A server opens the directory with Open, which takes a lock that the kernel releases when the
// process ends, however it ends; so a directory never stays locked after kill -9. The kubeconfig
// sub-command reads in parallel to a running server and takes no lock: every file is replaced by
// one rename, so a reader sees the old content or the new, never a part.
package datadir
