// Package packaging holds the tests of the Debian package and of the unit in packaging/.
package packaging
