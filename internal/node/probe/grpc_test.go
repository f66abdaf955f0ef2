package probe

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	v1 "k8s.io/api/core/v1"
)

// serveGRPC starts a server for the test and returns its port.
func serveGRPC(t *testing.T, register func(*grpc.Server)) int32 {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	done := make(chan error)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return int32(listener.Addr().(*net.TCPAddr).Port)
}

func grpcAction(port int32, service string) question {
	action := &v1.GRPCAction{Port: port}
	if service != "" {
		action.Service = &service
	}
	return question{handler: &v1.ProbeHandler{GRPC: action}}
}

func TestGRPC(t *testing.T) {
	port := serveGRPC(t, func(s *grpc.Server) {
		services := health.NewServer()
		services.SetServingStatus("ill", healthpb.HealthCheckResponse_NOT_SERVING)
		services.SetServingStatus("well", healthpb.HealthCheckResponse_SERVING)
		healthpb.RegisterHealthServer(s, services)
	})
	for _, c := range []struct {
		service string
		result  result
		part    string
	}{
		{"", success, "service healthy"},
		{"well", success, "service healthy"},
		{"ill", failure, `service unhealthy (responded with "NOT_SERVING")`},
		{"nobody", failure, "error: health rpc probe failed: rpc error: code = NotFound"},
	} {
		want(t, "service "+c.service, put(t, realChecker(), grpcAction(port, c.service)), c.result, c.part)
	}
}

func TestGRPCWithoutHealthService(t *testing.T) {
	port := serveGRPC(t, func(*grpc.Server) {})
	want(t, "no health service", put(t, realChecker(), grpcAction(port, "")), failure,
		"error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ")
}

func TestGRPCThatGetsNoAnswer(t *testing.T) {
	closed := grpcAction(int32(closedPort(t)), "")
	closed.timeout = 50 * time.Millisecond
	want(t, "closed port", put(t, realChecker(), closed), failure, " within 50ms: context deadline exceeded")

	hanging := &hangingHealth{asked: make(chan string, 1)}
	hangs := grpcAction(serveGRPC(t, func(s *grpc.Server) { healthpb.RegisterHealthServer(s, hanging) }), "")
	ctx := &expiring{Context: t.Context(), done: make(chan struct{})}
	go func() {
		if got := <-hanging.asked; got != "statusd-probe/v1.2.3" {
			t.Errorf("user agent: got %q, want statusd-probe/v1.2.3", got)
		}
		close(ctx.done)
	}()
	hangs.podIP, hangs.timeout = "127.0.0.1", patience
	want(t, "server that hangs", realChecker().check(ctx, hangs), failure, "timeout: health rpc did not complete within 1h0m0s")
}

// A server that speaks something else, or nothing that can be read, has failed.
func TestGRPCOfOtherServers(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	want(t, "server of HTTP/1", put(t, realChecker(), grpcAction(portOf(t, plain.Listener.Addr().String()).IntVal, "")), failure, "error: health rpc probe failed: ")

	for body, message := range map[string]string{
		"":                                      "malformed response",
		"\x00\x00\x00\x00\x05\x08\x01":          "malformed response", // shorter than it says
		"\x01\x00\x00\x00\x02\x08\x01":          "malformed response", // compressed, which was not asked for
		"\x00\x00\x00\x00\x01\xff":              "malformed response",
		"\x00\x00\x00\x00\x02\x08\x03":          `responded with "SERVICE_UNKNOWN"`,
		"\x00\x00\x00\x00\x02\x08\x09":          `responded with "9"`,
		"\x00\x00\x00\x00\x05\x12\x01x\x08\x02": `responded with "NOT_SERVING"`, // with a field that is not known
	} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "Grpc-Status")
			_, _ = io.WriteString(w, body)
			w.Header().Set("Grpc-Status", "0")
		}))
		server.Config.Protocols = new(http.Protocols)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		server.Start()
		want(t, strconv.Quote(body), put(t, realChecker(), grpcAction(portOf(t, server.Listener.Addr().String()).IntVal, "")), failure, message)
		server.Close()
	}
}

// expiring is a context whose time is up when the test says so.
type expiring struct {
	context.Context
	done chan struct{}
}

func (e *expiring) Done() <-chan struct{} { return e.done }

func (e *expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// hangingHealth answers nothing, but says who asked.
type hangingHealth struct {
	healthpb.UnimplementedHealthServer
	asked chan string
}

func (h *hangingHealth) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if md, ok := metadata.FromIncomingContext(ctx); ok && len(md["user-agent"]) > 0 {
		h.asked <- md["user-agent"][0]
	} else {
		h.asked <- ""
	}
	<-ctx.Done()
	return nil, ctx.Err()
}
