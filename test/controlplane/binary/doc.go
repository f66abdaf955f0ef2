// Package binary makes the control plane's binary: bin/controlplane, from the nested module
// test/controlplane/server/.
//
// Build may be called by any number of processes at once, as test binaries do: a file lock lets one
// process build, and the others find the result. It uses only the standard library, so that make
// can run it before anything else is compiled.
package binary
