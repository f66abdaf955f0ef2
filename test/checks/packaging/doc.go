// Package packaging holds the tests of the Debian package and of the unit in deploy/packaging/.
package packaging
