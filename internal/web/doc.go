// Package web is the page of a node: static files that a browser needs, embedded in the binary.
//
//	mux.Handle("GET /", web.Handler())
//	mux.Handle("GET /apis/", queryAPI)
//
// The page reads the query API of the server that it comes from, and nothing else: its
// Content-Security-Policy lets it load nothing from elsewhere and run nothing inline. It is
// made of plain ES modules, one idea a file, without a framework and without a build step;
// main.js is where to start reading.
//
// What pods are called and say may be hostile. It becomes text nodes and attributes that are
// no code, never HTML: the policy requires trusted types and allows no type to be made.
package web
