// Package shim is the main function of the program that runs one container of the process
// runtime: see [github.com/statusd/statusd/runtime/process]. It imports next to nothing,
// because there is one such process per container.
package shim
