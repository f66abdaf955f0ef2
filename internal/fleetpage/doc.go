// Package fleetpage is the page of a fleet: a list of its nodes, and below each of them the page and the query API of package queryapi.
//
//	GET /                    the nodes, those first that are not Ready or whose reports wait
//	GET /nodes/NAME/         the page of a node
//	GET /nodes/NAME/apis/    its query API
//
// A node has a server only after the first request for its page; the goroutines of the servers end with the context of [Page.Run]. All
// methods may be called from any goroutine.
package fleetpage
