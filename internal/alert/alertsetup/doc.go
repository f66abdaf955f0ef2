// Package alertsetup makes of a config section an engine of rules with its outputs and actions. The node and
// the observer beside a kubelet use it in the same way: each brings what it knows and what it is able to do.
package alertsetup
