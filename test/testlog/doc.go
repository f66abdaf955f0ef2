// Package testlog has a logger for tests.
package testlog
