package status

import (
	"context"
	"errors"
	"sync"
	"time"
	"weak"

	"k8s.io/client-go/rest"
)

// Versions reads the newest resource version of an API server. Managers that share a Versions
// ([Options.Versions]) share its requests. Its methods may be called from any goroutine.
type Versions struct {
	server VersionReader
	every  time.Duration
	// reading holds the newest answer while nothing reads.
	reading chan versionRead // capacity 1
}

// versionRead is the answer to a request that began at a certain time.
type versionRead struct {
	at      time.Time
	version revision
	err     error
	asked   bool // by this call
}

// NewVersions returns a reader that reads the version once per period, 0 meaning a minute, while no other
// response shows the server's version. After a restore from a backup, an idle node detects the restore
// within the period. The client of [NewClient] is a VersionReader.
func NewVersions(server VersionReader, every time.Duration) *Versions {
	if every <= 0 {
		every = time.Minute
	}
	v := &Versions{server: server, every: every, reading: make(chan versionRead, 1)}
	v.reading <- versionRead{}
	return v
}

// since returns a read that began after something was seen: the one of another manager if it is no older
// than the period, otherwise one of its own. A read that failed counts too, so that managers do not ask in
// turn while the server is away.
func (v *Versions) since(ctx context.Context, seen time.Time) versionRead {
	var read versionRead
	select {
	case read = <-v.reading:
	case <-ctx.Done():
		return versionRead{at: time.Now(), err: ctx.Err()}
	}
	before := read
	if read.asked = !read.at.After(seen) || time.Since(read.at) >= v.every; read.asked {
		read.at = time.Now()
		var version string
		version, read.err = v.server.ResourceVersion(ctx)
		read.version = parseRevision(version)
	}
	if read.err != nil && ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		v.reading <- before // a manager that has stopped has learned nothing for the others
		return read
	}
	v.reading <- read
	return read
}

// shared holds the default readers of the process, by the REST client that they ask with. Neither is kept alive by it.
var shared = struct {
	sync.Mutex
	byClient map[weak.Pointer[rest.RESTClient]]weak.Pointer[Versions]
}{byClient: make(map[weak.Pointer[rest.RESTClient]]weak.Pointer[Versions])}

// defaultVersions returns the reader of a manager that was given none: the one of all managers with the same REST
// client, if the client is one of [NewClient].
func defaultVersions(reader VersionReader) *Versions {
	client, ok := reader.(*restClient)
	if !ok {
		return NewVersions(reader, 0)
	}
	requests, ok := client.core.(*rest.RESTClient)
	if !ok {
		return NewVersions(reader, 0)
	}
	shared.Lock()
	defer shared.Unlock()
	key := weak.Make(requests)
	if v := shared.byClient[key].Value(); v != nil {
		return v
	}
	for other, v := range shared.byClient { // of clients that no manager has any more
		if v.Value() == nil {
			delete(shared.byClient, other)
		}
	}
	v := NewVersions(reader, 0)
	shared.byClient[key] = weak.Make(v)
	return v
}
