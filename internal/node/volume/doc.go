// Package volume makes the files of the volumes whose content comes from the API: configMap,
// secret, downwardAPI and projected.
//
// Two halves meet here. Pure functions turn a pod and the objects that it refers to into
// [Files]: paths, bytes and modes. The writer brings a directory to that state in one step, in
// the layout that programs know from the kubelet:
//
//	volume/..2026_11_15_10_00_00.1234567/   the files of one version
//	volume/..data -> ..2026_11_15_10_00_00.1234567
//	volume/key -> ..data/key
//
// A reader that opens volume/key sees one version or the next, and a program that watches
// ..data sees one rename per change.
//
// [Contents] puts both together for one pod: it reads the objects, requests and renews
// tokens, and writes what has changed. It starts no goroutine. The owner calls Refresh when
// an object, the pod or the time that Refresh returned says so.
//
// What the package needs of the API is the interface [Objects]; package apiobjects
// implements it with client-go.
package volume
