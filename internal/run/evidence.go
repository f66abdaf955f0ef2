package run

import (
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/status"
)

// evidence is a node's facts about itself: a guard would have to request them from outside.
type evidence struct {
	at time.Time // when the parts were asked; zero: they have not answered yet
	// locks is the outcome of taking the locks that all parts need, pods the outcome of listing the
	// runtime's pods.
	locks, pods asked

	joined bool // there is an API server
	// registered: the Node exists. report is why it could last not be brought up to date.
	registered bool
	report     error
	// renewed is when the lease was last renewed, zero if never; it counts for lease.
	renewed time.Time
	lease   time.Duration
	// watch is why the pods of the API are not followed, manifests why the pods of the directory are not.
	watch, manifests error
	pending          []status.Pending

	disk        guard.Disk
	diskErr     error // why it is not known
	certificate guard.Fact[time.Time]
	down        bool // the machine shuts down
}

// The names of sources.
const (
	sourceAPI       = "pods of the API"
	sourceManifests = "manifests"
	sourceRuntime   = "runtime"
)

// judged is the evidence as a guard judges it. Pure function.
func (f *evidence) judged(now time.Time, process guard.Process) guard.Evidence {
	const early = "the parts have not answered yet"
	e := guard.Evidence{
		Process:     guard.Read(now, process),
		Parts:       map[string]guard.Fact[guard.Answer]{"syncloop": f.locks.fact()},
		Sources:     map[string]guard.Fact[guard.Answer]{sourceRuntime: f.pods.fact()},
		PLEG:        guard.NotKnown[guard.PLEG](now, "the runtime's pods were not listed yet"),
		Operations:  guard.NotKnown[guard.Operations](now, "each list of the runtime's pods is judged: see the source runtime"),
		Runtime:     guard.NotKnown[guard.Answer](now, "it is a part of this process: see the source runtime"),
		Lease:       guard.NotKnown[guard.Lease](now, early),
		Behind:      guard.NotKnown[guard.Behind](now, early),
		APIServer:   guard.NotKnown[guard.Answer](now, early),
		Disk:        guard.NotKnown[guard.Disk](now, early),
		Certificate: guard.NotKnown[time.Time](now, early),
	}
	// A stuck lock is proof, which a lease that is renewed does not contradict: it is renewed without that lock.
	if e.Healthz = e.Parts["syncloop"]; !e.Healthz.Value.OK {
		e.Healthz = guard.NotKnown[guard.Answer](now, "see healthz/syncloop")
	}
	if !f.pods.since.IsZero() {
		e.PLEG = guard.Read(f.pods.at, guard.PLEG{Relist: f.pods.took, LastSeen: f.pods.since})
	}
	if !f.at.IsZero() {
		f.node(&e)
		f.cluster(&e)
	}
	return e
}

// node adds the facts of the machine.
func (f *evidence) node(e *guard.Evidence) {
	e.ShuttingDown, e.Certificate = guard.Read(f.at, f.down), f.certificate
	e.Sources[sourceManifests] = heard(f.at, f.manifests)
	if e.Disk = guard.Read(f.at, f.disk); f.diskErr != nil {
		e.Disk = guard.NotKnown[guard.Disk](f.at, f.diskErr.Error())
	}
}

// cluster adds the facts of the API server. While it does not answer, its other facts are unknown.
func (f *evidence) cluster(e *guard.Evidence) {
	now := f.at
	if !f.joined {
		const alone = "there is no API server"
		e.APIServer, e.Lease, e.Behind = guard.NotKnown[guard.Answer](now, alone), guard.NotKnown[guard.Lease](now, alone), guard.NotKnown[guard.Behind](now, alone)
		return
	}
	e.APIServer = f.apiServer(now)
	if !e.APIServer.Value.OK {
		const silent = "the API server does not answer"
		e.Lease, e.Behind = guard.NotKnown[guard.Lease](now, silent), guard.NotKnown[guard.Behind](now, silent)
		return
	}
	e.Sources[sourceAPI], e.Writes = heard(now, f.watch), heard(now, f.report) // the report of the Node is a write
	e.Behind = guard.Read(now, behind(f.pending, now))
	e.Lease = guard.Read(now, guard.Lease{Exists: !f.renewed.IsZero(), Renewed: f.renewed, Seen: f.renewed, Duration: f.lease})
}

// apiServer is whether it answers, by what became of the last report of the Node. An answer that refuses it is one.
func (f *evidence) apiServer(now time.Time) guard.Fact[guard.Answer] {
	status := apierrors.APIStatus(nil)
	switch {
	case f.report == nil && !f.registered:
		return guard.NotKnown[guard.Answer](now, "the node was not reported yet")
	case f.report == nil, errors.As(f.report, &status) && status.Status().Code < http.StatusInternalServerError:
		return guard.Read(now, guard.Answer{Answered: true, OK: true, Text: "ok"})
	}
	return guard.Read(now, guard.Answer{Answered: status != nil, Text: f.report.Error()})
}

// behind counts the statuses that wait only for the API server. Statuses with a refused field are not counted:
// the API server has the rest.
func behind(pending []status.Pending, now time.Time) (b guard.Behind) {
	for i := range pending {
		p := &pending[i]
		if p.Reason != "" || len(p.Refused) > 0 || p.Since.IsZero() {
			continue
		}
		b.APIBehindKubelet++
		b.APIBehindKubeletOldest = max(b.APIBehindKubeletOldest, now.Sub(p.Since))
	}
	return b
}

// heard is a source that is heard unless there is an error.
func heard(now time.Time, err error) guard.Fact[guard.Answer] {
	if err != nil {
		return guard.Read(now, guard.Answer{Answered: true, Text: err.Error()})
	}
	return guard.Read(now, guard.Answer{Answered: true, OK: true, Text: "ok"})
}
