// Package observe says whether what the API reports of a node is true. It compares what four sides
// know (the API server, the kubelet, the container runtime and the machine) and names each
// difference: what it is, since when, how certain that is, and what to do.
//
// The package itself is pure: [Facts] go in, a [Report] comes out. The packages below it collect the
// facts, one side each. A side that does not answer is unknown, never empty.
package observe
