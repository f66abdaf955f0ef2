// Package shim is the main function of the program that runs one container of the process runtime:
// see [github.com/statusd/statusd/runtime/process]. The package has few imports, because each
// container has a shim process.
package shim
