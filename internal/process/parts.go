package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// A Part is something that runs as long as the process does.
type Part struct {
	Name string
	// Run blocks until its context ends, with the cause for which the process ends, such as [ErrReload].
	Run func(context.Context) error
	// BeforeStop, if set, is called before the part is stopped, while all parts that were started
	// before it still run. It must end with its context; an error is logged.
	BeforeStop func(context.Context) error
}

// started is a part that runs.
type started struct {
	Part
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when run has returned
	err    error         // of run; read it after done
}

// errTimeout is why a part is left behind.
var errTimeout = errors.New("did not stop in time")

// RunParts starts the parts in their order and waits until ctx ends or a part ends by itself, which
// is an error. Then it stops them in the reverse order, one after the other, and all within the
// timeout.
func RunParts(ctx context.Context, log *slog.Logger, timeout time.Duration, parts []Part) error {
	running := make([]*started, len(parts))
	ended := make(chan *started, len(parts)) // so that none blocks on it
	for i, p := range parts {
		running[i] = start(context.WithoutCancel(ctx), p, ended)
		log.Debug("started", "part", p.Name)
	}
	var failure error
	select {
	case <-ctx.Done():
		log.Info("stopping")
	case p := <-ended:
		if ctx.Err() != nil { // what ends during a stop does not end by itself, whichever is seen first
			log.Info("stopping")
			break
		}
		failure = fmt.Errorf("%s ended by itself: %w", p.Name, cause(p.err))
		log.Error("part ended by itself, stopping", "part", p.Name, "err", p.err)
	}
	return errors.Join(failure, stopParts(ctx, log, timeout, running))
}

func cause(err error) error {
	if err == nil {
		return errors.New("without an error")
	}
	return err
}

func start(ctx context.Context, p Part, ended chan<- *started) *started {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &started{Part: p, cancel: cancel, done: make(chan struct{})}
	go func() {
		s.err = p.Run(ctx)
		close(s.done)
		ended <- s
	}()
	return s
}

// stopParts stops the parts with the cause of the end of their process, which has ended or not.
func stopParts(of context.Context, log *slog.Logger, timeout time.Duration, running []*started) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(of), timeout)
	defer cancel()
	// The hooks get half of the time, so that there is some left to stop in.
	hooks, cancelHooks := context.WithTimeout(ctx, timeout/2)
	defer cancelHooks()
	var problems []error
	for _, s := range slices.Backward(running) {
		if err := s.stop(ctx, hooks, context.Cause(of), log); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", s.Name, err))
		}
	}
	return errors.Join(problems...)
}

func (s *started) stop(ctx, hooks context.Context, why error, log *slog.Logger) error {
	begin := time.Now()
	if s.BeforeStop != nil && !s.hasEnded() {
		if err := s.BeforeStop(hooks); err != nil {
			log.Warn("shutdown hook failed", "part", s.Name, "err", err)
		}
	}
	s.cancel(why)
	select {
	case <-s.done:
	case <-ctx.Done():
		if !s.hasEnded() { // it may have, long ago, when the time is over
			log.Error("part did not stop in time", "part", s.Name)
			return errTimeout
		}
	}
	log.Info("stopped", "part", s.Name, "took", time.Since(begin).Round(time.Millisecond))
	return s.err
}

func (s *started) hasEnded() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
