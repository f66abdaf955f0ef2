package statustest

import (
	"context"
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// Config returns a client config for this server, for kubernetes.NewForConfig. Requests are function calls in this process, without
// connections, so that a whole program with clientset and informers may run in a testing/synctest bubble. The client has no rate
// limit.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: "http://statustest.invalid", Transport: transport{s}, QPS: -1}
}

// transport is an http.RoundTripper that calls a handler.
type transport struct{ handler http.Handler }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	body, write := io.Pipe()
	w := &pipeWriter{header: make(http.Header), body: write, began: make(chan struct{})}
	served := r.Clone(ctx)
	if served.Body == nil {
		served.Body = http.NoBody
	}
	go func() {
		defer func() {
			if recover() != nil { // http.ErrAbortHandler: the connection breaks
				w.abort()
			}
			served.Body.Close()
		}()
		t.handler.ServeHTTP(w, served)
		w.WriteHeader(http.StatusOK)
		write.Close()
	}()
	select {
	case <-w.began:
	case <-ctx.Done():
		cancel()
		body.CloseWithError(ctx.Err())
		return nil, ctx.Err()
	}
	if w.aborted {
		cancel()
		return nil, ErrAnswerLost
	}
	return &http.Response{
		Status: http.StatusText(w.code), StatusCode: w.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: &pipeBody{PipeReader: body, cancel: cancel}, Request: r, ContentLength: -1,
	}, nil
}

// pipeWriter is the writer of an answer that is read at the other end of a pipe.
type pipeWriter struct {
	header  http.Header
	body    *io.PipeWriter
	once    sync.Once
	began   chan struct{} // closed once code or aborted are set
	code    int
	sent    http.Header // as it was when the answer began
	aborted bool
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(code int) {
	w.once.Do(func() {
		w.code = code
		w.sent = w.header.Clone()
		close(w.began)
	})
}

func (w *pipeWriter) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(data)
}

// Flush implements [http.Flusher].
func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }

func (w *pipeWriter) abort() {
	w.once.Do(func() {
		w.aborted = true
		close(w.began)
	})
	w.body.CloseWithError(ErrAnswerLost)
}

// pipeBody ends the handler when the client closes the answer.
type pipeBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b *pipeBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}
