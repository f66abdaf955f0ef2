// Package view is the read model of a node: what is known of its pods and of the node itself, in the shape in which the query
// API, the page, the command line and alert rules read it.
//
// A [Source] has the facts: an agent that runs the pods, or a process that observes them. [Describe] and [DescribeNode] join
// them with what an audit, a guard, the machine's load and alert rules have found.
package view
