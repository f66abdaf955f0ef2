package status

import (
	"context"
	"time"
)

// Versions reads the newest resource version of an API server. Managers that share one
// ([Options.Versions]) ask once for all of them. Its methods may be called from any goroutine.
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

// NewVersions returns a reader that asks once per period, 0 for a minute, while nothing else shows the
// server's version. After a restore from a backup, an idle node finds out within the period. The client of
// [NewClient] is a VersionReader.
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
	if read.asked = !read.at.After(seen) || time.Since(read.at) >= v.every; read.asked {
		read.at = time.Now()
		var version string
		version, read.err = v.server.ResourceVersion(ctx)
		read.version = parseRevision(version)
	}
	v.reading <- read
	return read
}
