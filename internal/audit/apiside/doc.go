// Package apiside watches a node's objects in the API server, for package audit: the pods that are bound to
// the node, the Node and its lease, and the server's clock.
//
//	side, err := apiside.New(apiside.Options{Config: config, Node: "n1"})
//	go side.Run(ctx)
//	facts := side.Facts()
//
// # Current
//
// A reflector watches each of the three. An open watch is current while events arrive on it, or the bookmarks that a server sends about once a
// minute. A watch without events or bookmarks for longer hangs; it is closed, and the objects are listed again. [Side.Confirm] finds out by one
// small request whether the watch has missed changes.
//
// # Unknown, never empty
//
// A server that is down, that refuses the request or that was restored from a backup leaves the last facts, with the
// reason in the Answer.
//
// # Concurrency
//
// [New] starts nothing. [Side.Run] may be called once; all other methods may be called from any goroutine. The
// facts that [Side.Facts] returns are not changed afterwards.
package apiside
