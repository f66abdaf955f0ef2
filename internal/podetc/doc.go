// Package podetc makes a pod's own files of /etc: hosts and resolv.conf. The runtimes of this machine share it.
package podetc
