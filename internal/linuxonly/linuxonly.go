//go:build linux

// Package linuxonly is imported by programs that run on Linux only: elsewhere go build ends with its name before it compiles anything.
package linuxonly
