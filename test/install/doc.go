// Package install checks how statusd is installed: the Helm chart against the kustomize overlays, and the deb and rpm packages. It is a
// module of its own, so that the root module depends neither on Helm nor on nfpm.
package install
