// Package outside holds the tests that look at this module as other modules do: the example programs,
// built in a directory of their own and run against a real API server, and what the README shows.
package outside
