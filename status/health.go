package status

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/instant"
)

// failure is why a request failed: because of the pod, or because of the server.
type failure uint8

const (
	// none: it did not fail.
	none failure = iota
	// refused: the server answers, and rejects the request.
	refused
	// denied: the server answers that this is forbidden. The reason may be the pod; if several
	// pods are denied, it is the server, see [health.suspect].
	denied
	// internal: the server answers that it has failed. The reason may be the pod, for which it always fails;
	// as for denied, it is the server if several pods get that answer.
	internal
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
	case tooLarge(err):
		return refused // although etcd's refusal is a 500
	case !fromServer(err): // something before it answers in its place
		return away
	case apierrors.IsUnauthorized(err): // a token that has expired, an authenticator that is down
		return away
	case apierrors.IsForbidden(err):
		return denied
	case errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError:
		return refused
	case apierrors.IsInternalError(err):
		return internal
	default:
		return away
	}
}

// ofEither reports whether the pod or the server may be the reason.
func (f failure) ofEither() bool { return f == denied || f == internal }

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
	// refusing: the server has asked for a pause, and has served no request that began since.
	refusing bool
	// failing: requests have failed by the server's fault, and none has succeeded since.
	failing bool
	// tried is when a request last began or ended, succeeded when a request last succeeded, and
	// began when the newest successful request began.
	tried, succeeded, began time.Time
	// failedPod is the first pod since the last success with a failure that the pod or the server may have
	// caused. failsAll: another pod had the same failure, failedAs.
	failedPod types.UID
	failedAs  failure
	failsAll  bool
	// singled is when the server last asked for a pause with regard to some pods only.
	singled time.Time
}

// suspect records a failure that the pod or the server may have caused. It reports whether the server is the cause: more
// than one pod had this failure, and no pod has succeeded or failed otherwise in between. A server that denies a request
// after all requests have failed works again.
func (h *health) suspect(uid types.UID, f failure) bool {
	if h.failedAs != f {
		h.failedPod, h.failedAs, h.failsAll = "", f, false
	}
	h.failedPod = cmp.Or(h.failedPod, uid)
	h.failsAll = h.failsAll || h.failedPod != uid
	return h.failsAll
}

// singlesOut reports whether the server asks for a pause with regard to some pods only: since it last
// did so for this one, at the given time, it has served another. For a while it is then taken to do
// so with regard to any pod.
func (h *health) singlesOut(throttled, now time.Time) bool {
	if !throttled.IsZero() && h.began.After(throttled) {
		h.singled = now
		return true
	}
	return !h.singled.IsZero() && now.Sub(h.singled) < longestPause
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
		h.refusing = true
	}
	if out.failure.ofServer() {
		h.failing = true
		return false
	}
	// A denial may be followed by a look whether the pod is there, which proves little of what the server does with others.
	served := out.succeeded && out.failure != denied
	if served {
		h.succeeded, h.began = now, instant.Later(h.began, began)
		h.failedPod, h.failedAs, h.failsAll = "", none, false
		h.refusing = h.refusing && !began.After(h.pausedAt)
	}
	// A server that refuses what is wrong with a pod, or what it may not do, would serve others.
	if !served && (out.asked > 0 || out.failure != refused && out.failure != denied) {
		return false
	}
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
