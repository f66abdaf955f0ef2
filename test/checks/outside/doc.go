// Package outside holds the tests that use this module as other modules do: the example programs,
// built in a directory of their own and run against a real API server, and the code in the README.
package outside
