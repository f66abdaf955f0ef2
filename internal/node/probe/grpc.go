package probe

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/backoff"
)

// connects space the tries to reach a port that refuses.
var connects = backoff.Schedule{First: 50 * time.Millisecond, Limit: time.Second}

// checkGRPC asks the container's grpc.health.v1 service, without encryption, which the API
// has no way to ask for. A port that refuses is tried again until the timeout. The one call is made over
// HTTP/2 directly: the library of gRPC would triple what a node needs of other modules.
func (c *checker) checkGRPC(ctx context.Context, q question, action *v1.GRPCAction) answer {
	address := net.JoinHostPort(q.podIP, strconv.Itoa(int(action.Port)))
	conn, err := connect(ctx, address)
	if err != nil {
		return failed("timeout: failed to connect service %q within %v: %v", address, q.timeout, err)
	}
	defer conn.Close()
	service := ""
	if action.Service != nil {
		service = *action.Service
	}
	got, err := c.callHealth(ctx, conn, address, service)
	var refused *rpcError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return failed("timeout: health rpc did not complete within %v", q.timeout)
	case errors.As(err, &refused) && refused.code == rpcUnimplemented:
		return failed("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s", refused.message)
	case err != nil:
		return failed("error: health rpc probe failed: %v", err)
	case got != serving:
		return failed("service unhealthy (responded with %q)", got)
	}
	return succeeded("service healthy")
}

// connect opens a connection. A server that does not listen yet is tried again until ctx ends.
func connect(ctx context.Context, address string) (net.Conn, error) {
	for attempt := 1; ; attempt++ {
		conn, err := dial(ctx, "tcp", address)
		if err == nil {
			return conn, nil
		}
		if !backoff.Sleep(ctx, connects.Random(attempt)) {
			return nil, ctx.Err()
		}
	}
}

// callHealth makes the one call of grpc.health.v1.Health: Check.
func (c *checker) callHealth(ctx context.Context, conn net.Conn, address, service string) (servingStatus, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/grpc.health.v1.Health/Check", bytes.NewReader(healthRequest(service)))
	if err != nil {
		return 0, err
	}
	request.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "User-Agent": {c.userAgent}}
	transport := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		Protocols:   new(http.Protocols), DisableCompression: true, MaxResponseHeaderBytes: maxBodyBytes,
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBodyBytes+1))
	if err != nil {
		return 0, err
	}
	if err := rpcStatus(response); err != nil {
		return 0, err
	}
	return healthResponse(body)
}

// servingStatus is a grpc.health.v1.HealthCheckResponse.ServingStatus.
type servingStatus uint64

const serving servingStatus = 1

func (s servingStatus) String() string {
	names := []string{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"}
	if s < servingStatus(len(names)) {
		return names[s]
	}
	return strconv.FormatUint(uint64(s), 10)
}

// healthRequest is a framed HealthCheckRequest: its field 1 is the service.
func healthRequest(service string) []byte {
	var message []byte
	if service != "" {
		message = protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), service)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

var errMalformed = errors.New("malformed response")

// healthResponse reads a framed HealthCheckResponse: its field 1 is the status, which is 0 if it is missing.
func healthResponse(body []byte) (s servingStatus, err error) {
	const header = 5 // whether it is compressed, and the length
	if len(body) < header || body[0] != 0 || uint64(binary.BigEndian.Uint32(body[1:])) != uint64(len(body)-header) {
		return 0, errMalformed
	}
	for rest := body[header:]; len(rest) > 0; {
		field, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return 0, errMalformed
		}
		size := protowire.ConsumeFieldValue(field, kind, rest[n:])
		if size < 0 {
			return 0, errMalformed
		}
		if field == 1 && kind == protowire.VarintType {
			value, _ := protowire.ConsumeVarint(rest[n:])
			s = servingStatus(value)
		}
		rest = rest[n+size:]
	}
	return s, nil
}

// rpcError is a call that the server did not carry out.
type rpcError struct {
	code    int
	message string
}

// gRPC's names of the error codes.
var rpcCodes = []string{"OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied",
	"ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable", "DataLoss", "Unauthenticated"}

const (
	rpcUnknown       = 2
	rpcUnimplemented = 12
)

func (e *rpcError) Error() string {
	code := fmt.Sprintf("Code(%d)", e.code)
	if e.code >= 0 && e.code < len(rpcCodes) {
		code = rpcCodes[e.code]
	}
	return fmt.Sprintf("rpc error: code = %s desc = %s", code, e.message)
}

// rpcStatus is what became of a call, by the trailers. A server that has no body to send has them in the header.
func rpcStatus(response *http.Response) error {
	trailer := response.Trailer
	if response.Header.Get("Grpc-Status") != "" {
		trailer = response.Header
	}
	code, err := strconv.Atoi(trailer.Get("Grpc-Status"))
	switch {
	case err != nil && response.StatusCode == http.StatusNotFound: // a server of HTTP/2 alone
		return &rpcError{rpcUnimplemented, "unexpected HTTP status code received from server: " + response.Status}
	case err != nil:
		return &rpcError{rpcUnknown, "no status of the call, HTTP status code received from server: " + response.Status}
	case code == 0:
		return nil
	}
	message := trailer.Get("Grpc-Message")
	if plain, err := url.PathUnescape(message); err == nil {
		message = plain
	}
	return &rpcError{code, message}
}
