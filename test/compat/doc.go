// Command compat tries statusd with other versions of Kubernetes and writes the tables of docs/reference/compatibility.md:
//
//	compat library VERSION...          the library with versions of k8s.io/*, such as 0.37.2: make compat
//	compat servers VERSION...          API servers of versions, such as 1.34.4: make compat-servers
//	compat -short servers VERSION...   the same without the real tests
//
// Results are kept in build/compat, so that a run of one version leaves the rows of the others in the tables.
package main
