// Package journaltest is the conformance suite that every journal passes, and a journal
// whose writes fail on demand.
package journaltest
