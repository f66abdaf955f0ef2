package queryapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/statusd/statusd/internal/localhost"
	"github.com/statusd/statusd/internal/view"
)

// Options configure a server.
type Options struct {
	// Sources provide the facts of the node.
	view.Sources
	// Page serves all paths outside the API, except paths below /apis; nil: no page.
	Page http.Handler
	// MaxWatchers is how many watches there may be at a time; 64 if 0.
	MaxWatchers int
	// Heartbeat is how often a watch without changes sends a comment; 15 s if 0.
	Heartbeat time.Duration
	// Epoch is a part of each revision. It must differ from the epoch of an earlier server, whose
	// revisions mean nothing to this one. If empty, it is random.
	Epoch string
}

// Server answers questions about a node. Make it with [New].
type Server struct {
	options Options
	hub     *hub
	routes  []route
	// ending is closed when Run ends, which ends the watches.
	ending    chan struct{}
	closeOnce sync.Once
}

// New makes a server. New starts nothing: see [Server.Run].
func New(options Options) (*Server, error) {
	if options.Source == nil {
		return nil, errors.New("api: options: Source is nil")
	}
	if options.MaxWatchers == 0 {
		options.MaxWatchers = 64
	}
	if options.Heartbeat == 0 {
		options.Heartbeat = 15 * time.Second
	}
	if options.Location == nil {
		options.Location = time.Local
	}
	if options.Epoch == "" {
		random := make([]byte, 6)
		rand.Read(random) // never fails
		options.Epoch = hex.EncodeToString(random)
	}
	s := &Server{options: options, hub: newHub(options, time.Now), ending: make(chan struct{})}
	s.routes = s.table()
	return s, nil
}

// Run follows the source until ctx ends, and then ends all watches. Run may be called once.
func (s *Server) Run(ctx context.Context) error {
	defer s.closeOnce.Do(func() { close(s.ending) })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var following sync.WaitGroup
	var err error
	following.Go(func() {
		defer cancel()
		if err = s.options.Source.Watch(ctx, s.hub.announce); ctx.Err() != nil {
			err = nil
		}
	})
	s.hub.run(ctx)
	following.Wait()
	return err
}

// Handler serves the API, and the page if there is one.
func (s *Server) Handler() http.Handler { return localhost.Only(http.HandlerFunc(s.serve), forbidden) }
