// Package view is the read model of a node: the facts of its pods and of the node itself, in the form that the query API, the
// page, the command line and alert rules read.
//
// A [Source] has the facts: an agent that runs the pods, or a process that observes them. [Describe] and [DescribeNode] add
// the findings of an audit, a guard, the machine's load and alert rules.
package view
