// Package history lends statusd's store of histories to the kubelet's tree, which must not import internal packages of statusd.
// The build gives the kubelet's main module the path of this module and copies this package into it.
package history

import (
	"log/slog"

	"github.com/statusd/statusd/internal/history"
)

// Store keeps what happened to the pods of a node.
type Store = history.Store

// New returns a store that survives a restart in a file; empty: it does not.
func New(file string, logger *slog.Logger) *Store {
	return history.New(history.Options{File: file, Logger: logger})
}
