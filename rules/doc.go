// Package rules watches the state of a node and its pods, and warns.
package rules
