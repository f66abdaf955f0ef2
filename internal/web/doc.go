// Package web is the page of a node: static files that a browser needs, embedded in the binary.
//
//	mux.Handle("GET /", web.Handler())
//	mux.Handle("GET /apis/", queryAPI)
//
// The page reads only the query API of its own server: its Content-Security-Policy forbids external
// resources and inline scripts. It is made of plain ES modules, one idea a file, without a
// framework and without a build step. Start reading at main.js.
//
// Names and messages of pods may be hostile. They become text nodes and attributes that are no
// code, never HTML: the policy requires trusted types and allows no type to be created.
package web
