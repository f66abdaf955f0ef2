package shutdown

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/statusd/statusd/internal/backoff"
)

var errLost = errors.New("shutdown: the connection to the host is lost")

// Listener acts on the shutdowns of a [Host].
type Listener struct {
	// Delays is called with the host's maximum delay whenever the host grants a delay. It may be nil.
	Delays func(atMost time.Duration)
	// Begin begins the preparation for a shutdown, or joins it if it was begun, and returns a channel that is closed once
	// the shutdown may proceed.
	Begin func(atMost time.Duration) <-chan struct{}
	// Cancel undoes it. The next shutdown is not delayed before it returns.
	Cancel func()
}

// retries space the tries to reach a host that cannot be heard.
var retries = backoff.Schedule{First: time.Second, Limit: time.Minute}

// Follow delays the shutdowns of a host and reports them to a listener, until ctx ends. It reconnects to an unreachable host; a
// shutdown that has begun goes on meanwhile.
func Follow(ctx context.Context, host Host, listener Listener, log *slog.Logger) {
	f := &follower{host: host, Listener: listener}
	for attempt := 1; ; attempt++ {
		heard, err := f.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if heard {
			attempt = 1
		}
		if attempt == 1 { // and not again each minute on a machine that has no logind
			log.Info("shutdowns of this machine are not announced", "err", err)
		}
		if !backoff.Sleep(ctx, retries.Random(attempt)) {
			return
		}
	}
}

type follower struct {
	host Host
	Listener
	announced bool // a shutdown, and it was not canceled
}

// follow acts on announcements until the host is not heard any more. follow reports whether it was heard at all.
func (f *follower) follow(ctx context.Context) (heard bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	announcements, err := f.host.Announcements(ctx)
	if err != nil {
		return false, err
	}
	defer func() { // nothing of the host runs on
		cancel()
		for range announcements {
		}
	}()
	atMost, release, err := f.delay(ctx)
	if err != nil {
		return false, err
	}
	defer func() { release() }()
	var mayGoOn <-chan struct{} // nil: no shutdown, or it was let go on
	for {
		select {
		case begins, open := <-announcements:
			switch {
			case !open:
				return true, errLost
			case begins:
				f.announced = true
				mayGoOn = f.Begin(atMost)
			case f.announced: // else it only says how things are
				f.announced, mayGoOn = false, nil
				f.Cancel()
				release() // if it was not: two locks would be one too many
				if atMost, release, err = f.delay(ctx); err != nil {
					release = func() {}
					return true, err
				}
			}
		case <-mayGoOn:
			mayGoOn = nil
			release()
		}
	}
}

func (f *follower) delay(ctx context.Context) (atMost time.Duration, release func(), err error) {
	atMost, release, err = f.host.Delay(ctx)
	if err == nil && f.Delays != nil {
		f.Delays(atMost)
	}
	return atMost, release, err
}
