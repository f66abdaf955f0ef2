// Package guard judges the health of a kubelet by evidence, decides whether a restart would help, and
// keeps what was known before each one. The judgement is a pure function of the evidence.
package guard
