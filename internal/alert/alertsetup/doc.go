// Package alertsetup makes an engine of rules with its outputs and actions from a config section. The node
// and the observer beside a kubelet use it in the same way: each provides its sources and abilities.
package alertsetup
