package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/guard"
)

const (
	// maxAnswer is how much of the answer of a health check is kept.
	maxAnswer = 512
	// maxMetrics is the maximum size of the metrics; a kubelet with 250 pods serves a few MiB.
	maxMetrics = 32 << 20
)

// parts are the checks of the kubelet's server.
var parts = []string{"ping", "log", "syncloop"}

// plainClient queries the loopback endpoint of the kubelet: no proxy, and a new connection for each
// request, because a kept connection would hide a kubelet that accepts no new connections.
func plainClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: noRedirect}
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (c *Collector) askHealthz(ctx context.Context, now time.Time) (again bool) {
	answer, status, err := check(ctx, c.http, c.o.Healthz)
	fact := guard.Read(now, answer)
	switch {
	case err != nil:
		fact = guard.NotKnown[guard.Answer](now, err.Error())
	case healthCheckMissing(status):
		fact = guard.NotKnown[guard.Answer](now, fmt.Sprintf("%s says %s: is this the kubelet's healthzPort?", c.o.Healthz, answer.Text))
	}
	c.set(func(e *guard.Evidence) { e.Healthz = fact })
	return false
}

// healthCheckMissing reports whether an answer comes from a server without a health check at this path, or from a server
// that denies access to it. Such an answer is no evidence about the kubelet.
func healthCheckMissing(status int) bool {
	return status >= http.StatusMultipleChoices && status < http.StatusInternalServerError && status != http.StatusTooManyRequests
}

func (c *Collector) askParts(ctx context.Context, now time.Time) (again bool) {
	facts := map[string]guard.Fact[guard.Answer]{}
	for _, name := range parts {
		answer, status, err := check(ctx, c.o.ServerClient, c.o.Server+"/healthz/"+name)
		switch {
		case err != nil:
			facts[name] = guard.NotKnown[guard.Answer](now, err.Error())
		case healthCheckMissing(status):
			facts[name] = guard.NotKnown[guard.Answer](now, answer.Text)
		default:
			facts[name] = guard.Read(now, answer)
		}
	}
	c.set(func(e *guard.Evidence) { e.Parts = facts })
	return false
}

// check makes one request. An error means that the request could not be made, which is no evidence about the
// kubelet.
func check(ctx context.Context, client *http.Client, url string) (answer guard.Answer, status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return guard.Answer{}, 0, err
	}
	begin := time.Now()
	response, err := client.Do(request)
	took := time.Since(begin)
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) { // we end, not the kubelet
			return guard.Answer{}, 0, ctx.Err()
		}
		return guard.Answer{Text: cause(err), Took: took}, 0, nil
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	text := strings.TrimSpace(string(body))
	if response.StatusCode != http.StatusOK {
		text = strings.TrimSpace(fmt.Sprintf("%d %s", response.StatusCode, text))
	}
	return guard.Answer{Answered: true, OK: response.StatusCode == http.StatusOK, Text: text, Took: took}, response.StatusCode, nil
}

// cause is an error without the URL, which the reader knows.
func cause(err error) string {
	for inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), "Get "); inner = errors.Unwrap(err) {
		err = inner
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) { // the latter while it connects
		return "no answer in time"
	}
	return err.Error()
}

func (c *Collector) askMetrics(ctx context.Context, now time.Time) (again bool) {
	read, err := c.fetchMetrics(ctx)
	c.set(func(e *guard.Evidence) {
		if err != nil {
			e.PLEG, e.Operations = guard.NotKnown[guard.PLEG](now, cause(err)), guard.NotKnown[guard.Operations](now, cause(err))
			e.Starts, e.Certificates = guard.NotKnown[time.Duration](now, cause(err)), guard.NotKnown[guard.Certificates](now, cause(err))
			e.Requests = guard.NotKnown[guard.Requests](now, cause(err))
			return
		}
		e.Requests = c.metrics.takeRequests(read, now)
		e.Starts, e.Certificates = c.metrics.takeStarts(read, now), c.metrics.takeCertificates(read, now)
		e.PLEG, e.Operations = c.metrics.take(read, now)
	})
	return false
}

func (c *Collector) fetchMetrics(ctx context.Context) (reading, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.o.Server+"/metrics", nil)
	if err != nil {
		return reading{}, err
	}
	response, err := c.o.ServerClient.Do(request)
	if err != nil {
		return reading{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return reading{}, fmt.Errorf("/metrics says %s", response.Status)
	}
	return readMetrics(io.LimitReader(response.Body, maxMetrics))
}
