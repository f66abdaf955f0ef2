// Package volume writes the files of volumes whose content comes from the API: configMap, secret,
// downwardAPI and projected.
//
// The package has two halves. Pure functions turn a pod and the objects that it refers to into
// [Files]: paths, bytes and modes. The writer updates a directory to these files in one step, in
// the kubelet's layout:
//
//	volume/..2026_11_15_10_00_00.1234567/   the files of one version
//	volume/..data -> ..2026_11_15_10_00_00.1234567
//	volume/key -> ..data/key
//
// A reader that opens volume/key sees one version or the next, and a program that watches
// ..data sees one rename per change.
//
// [Contents] combines both for one pod: it reads the objects, requests and renews tokens, and
// writes the changed files. It starts no goroutine. The owner calls Refresh when an object or the
// pod has changed, and at the time that Refresh returned.
//
// The package reads the API through the interface [Objects]; package apiobjects implements it with
// client-go.
package volume
