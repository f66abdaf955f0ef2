// Package podetc makes the files of /etc that a pod has of its own: hosts and resolv.conf. The runtimes of this machine share it.
package podetc
