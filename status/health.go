package status

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/internal/instant"
)

// failure is why a request failed: because of the pod, or because of the server.
type failure uint8

const (
	// none: it did not fail.
	none failure = iota
	// refused: the server answers, and rejects the request.
	refused
	// away: the server cannot be reached, or fails by itself.
	away
	// timedOut: the server has not answered in time.
	timedOut
	// overloaded: the server asks for a pause.
	overloaded
)

// ofServer reports whether the server is the reason: other pods would have failed as well.
func (f failure) ofServer() bool { return f >= away }

func failureOf(err error) failure {
	status := apierrors.APIStatus(nil)
	switch {
	case err == nil:
		return none
	case pauseAsked(err) > 0:
		return overloaded
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err):
		return timedOut
	case errors.Is(err, context.Canceled):
		return refused // by this process, which is about to end
	case !fromServer(err): // something before it answers in its place
		return away
	case errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError:
		return refused
	default:
		return away
	}
}

// recordResult records the result of a request.
func (o *outcome) recordResult(err error, took time.Duration) {
	o.failure = failureOf(err)
	if err == nil {
		o.succeeded, o.latency = true, took
	}
}

// health is what the engine has learned of the API server from the results of requests. It
// is a plain value; the time is passed in.
type health struct {
	// The server has asked at pausedAt for a pause until pausedUntil.
	pausedAt, pausedUntil time.Time
	// failing: requests have failed by the server's fault, and none has succeeded since.
	failing bool
	// tried is when a request was last begun or ended, succeeded when one last succeeded.
	tried, succeeded time.Time
}

// record takes in how a turn ended that began at a certain time. It reports whether the server
// has recovered: pods that wait for its sake need not wait any longer.
func (h *health) record(out outcome, began, now time.Time) (recovered bool) {
	if out.requests == 0 {
		return false
	}
	h.tried = now
	if out.pause > 0 {
		if !h.paused(now) {
			h.pausedAt = now
		}
		h.pausedUntil = instant.Later(h.pausedUntil, now.Add(out.pause))
	}
	if out.failure.ofServer() {
		h.failing = true
		return false
	}
	if !out.succeeded {
		return false
	}
	h.succeeded = now
	recovered = h.failing
	// What was under way when the server asked for a pause does not end it.
	if h.paused(now) {
		if recovered = began.After(h.pausedAt); recovered {
			h.pausedUntil = now
		}
	}
	h.failing = h.failing && !recovered
	return recovered
}

func (h *health) paused(now time.Time) bool { return now.Before(h.pausedUntil) }

// backgroundFrom is when background work may go on: after a pause as long again.
func (h *health) backgroundFrom() time.Time {
	return h.pausedUntil.Add(min(h.pausedUntil.Sub(h.pausedAt), longestPause))
}

// opens returns when the next request may be made: now, unless there is a pause, and then
// when a probe is due.
func (h *health) opens(now time.Time) time.Time {
	if !h.paused(now) {
		return now
	}
	return instant.Earlier(h.pausedUntil, h.probeAt())
}

// probeAt is when a pod should be tried in a pause, so that its end is noticed.
func (h *health) probeAt() time.Time { return h.tried.Add(probeEvery) }

// worthATry reports whether a pod that waits for the server's sake may be tried because of
// news of it: always if the server is back as far as is known, else once a second.
func (h *health) worthATry(now time.Time) bool {
	if h.failing {
		if now.Sub(h.tried) < time.Second {
			return false
		}
		h.tried = now
	}
	return true
}
