// Package apiobjects reads the objects that pods refer to from the API server, with the
// rights of a node: the Node authorizer lets a node read, list and watch by name the config
// maps and secrets that its pods refer to, and request tokens bound to its pods.
//
// Objects are read when they are needed. A watch per object, shared by all pods that
// refer to it, only says that something may have changed; it keeps nothing in memory, so no
// secret stays there longer than it takes to write it.
package apiobjects
