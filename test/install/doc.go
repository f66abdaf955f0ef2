// Package install checks the installation of statusd: the Helm chart against the kustomize overlays, and the deb and rpm packages. It
// is a separate module, so that the root module depends neither on Helm nor on nfpm.
package install
