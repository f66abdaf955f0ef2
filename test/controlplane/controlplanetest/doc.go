// Package controlplanetest provides a real API server for tests.
//
// A test that ends or disturbs the server starts its own:
//
//	server := controlplanetest.Start(t)
//
// The other tests share one: make test-real starts it for all packages. Without make it starts with the first test of a
// package that calls Server (a start takes seconds), and ends with the package:
//
//	var shared controlplanetest.Shared
//
//	func TestMain(m *testing.M) { shared.Main(m) }
//
//	func TestX(t *testing.T) { server := shared.Server(t); ... }
//
// Tests that share a server use a namespace and a node name each; a node name in use by another package is an error. When a test fails, the
// server's log of that time is printed. Nothing is left behind: no process, no file, no goroutine.
//
// Methods of Server that take a testing.TB fail that test and, as t.Fatal does, may only be called
// from its goroutine.
package controlplanetest
