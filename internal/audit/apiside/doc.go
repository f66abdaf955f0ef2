// Package apiside watches what the API server knows of a node, for package observe: the pods that are bound
// to it, the Node and its lease, and the server's clock.
//
//	side, err := apiside.New(apiside.Options{Config: config, Node: "n1"})
//	go side.Run(ctx)
//	facts := side.Facts()
//
// # Current
//
// Each of the three is watched by a reflector. A watch that is open is current while the server is heard on
// it: by events, or by the bookmarks that a server sends about once a minute. A watch on which nothing comes for longer hangs; it is ended, and
// the objects are listed again. [Side.Confirm] asks the server, with one small request, whether the watch has missed
// anything.
//
// # Unknown, never empty
//
// A server that is down, that refuses the request or that was restored from a backup leaves the last facts, with the
// reason in the Answer.
//
// # Concurrency
//
// [New] starts nothing. [Side.Run] may be called once; all other methods may be called from any goroutine. What
// [Side.Facts] returns is not changed afterwards.
package apiside
