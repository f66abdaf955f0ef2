package doctor

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorization "k8s.io/api/authorization/v1"
	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/unixsocket"
)

// apiServer answers the requests of the checks.
type apiServer struct {
	version string
	ahead   time.Duration
	denied  string // a verb
	renewed time.Duration
	status  int
}

func (a apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", time.Now().Add(a.ahead).UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Type", "application/json")
	if a.status != 0 {
		w.WriteHeader(a.status)
		return
	}
	var answer any
	switch {
	case r.URL.Path == "/version":
		answer = map[string]string{"gitVersion": a.version}
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		var review authorization.SelfSubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		review.Status.Allowed = review.Spec.ResourceAttributes.Verb != a.denied
		answer = review
	default:
		renewed := metav1.NewMicroTime(time.Now().Add(-a.renewed))
		answer = coordination.Lease{Spec: coordination.LeaseSpec{RenewTime: &renewed}}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// healthy is a subject without a fault, on a server.
func healthy(t *testing.T, a apiServer) Subject {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return Subject{
		NodeName: "node-1", StateDir: t.TempDir(), Client: &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}},
		Rights: Watching("node-1"), OwnsLease: true, Unit: "statusd-test-none.service",
	}
}

func find(t *testing.T, findings []Finding, check string) Finding {
	t.Helper()
	for _, f := range findings {
		if f.Check == check {
			return f
		}
	}
	t.Fatalf("no finding about %q in %+v", check, findings)
	return Finding{}
}

func TestExamine(t *testing.T) {
	good := apiServer{version: "v1.36.3", renewed: time.Hour}
	change := func(f func(*apiServer)) apiServer { a := good; f(&a); return a }
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		name   string
		server apiServer
		with   func(*Subject)
		check  string
		want   Result
		found  string
	}{
		{"config is wrong", good, func(s *Subject) { s.ConfigProblem = errors.New("nodeName: bad") }, "config", Failed, "nodeName: bad"},
		{"version is tested", good, nil, "API server", OK, "v1.36.3"},
		{"version is too old", change(func(a *apiServer) { a.version = "v1.29.1" }), nil, "API server", Warning, "v1.29.1"},
		{"version is too new", change(func(a *apiServer) { a.version = "v1.40.0" }), nil, "API server", Warning, "v1.40.0"},
		{"credentials are refused", change(func(a *apiServer) { a.status = http.StatusUnauthorized }), nil, "API server", Failed, "401"},
		{"server does not answer", good, func(s *Subject) { s.Client = &rest.Config{Host: "http://127.0.0.1:1"} }, "API server", Failed, "refused"},
		{"no client", good, func(s *Subject) { s.Client, s.ClientProblem = nil, errors.New("no such file") }, "API server", Failed, "no such file"},
		{"clocks agree", good, nil, "clock", OK, ""},
		{"clock of the server is ahead", change(func(a *apiServer) { a.ahead = time.Hour }), nil, "clock", Failed, "ahead"},
		{"clock of the server is behind", change(func(a *apiServer) { a.ahead = -10 * time.Second }), nil, "clock", Warning, "behind"},
		{"rights are granted", good, nil, "rights", OK, "all 4"},
		{"right is missing", change(func(a *apiServer) { a.denied = "watch" }), nil, "rights", Failed, "watch pods, watch nodes"},
		{"no process renews the lease", good, nil, "node name", OK, ""},
		{"another process renews the lease", change(func(a *apiServer) { a.renewed = 3 * time.Second }), nil, "node name", Failed, "another machine"},
		{"state directory is a file", good, func(s *Subject) { s.StateDir = file }, "state directory", Failed, "not a directory"},
		{"state directory is missing", good, func(s *Subject) { s.StateDir = filepath.Join(s.StateDir, "a", "b") }, "state directory", OK, "can be created"},
		{"state directory is on a file system without room for directories", good, func(s *Subject) { s.StateDir = "/proc/statusd" }, "state directory", Failed, "cannot be created"},
		{"config has two problems", good, func(s *Subject) { s.ConfigProblem = errors.New("config: a\nconfig: b") }, "config", Failed, "config: a; b"},
		{"state directory is writable", good, nil, "state directory", OK, "synced write"},
		{"address is taken", good, func(s *Subject) { s.Addresses = []string{taken.Addr().String()} }, "address " + taken.Addr().String(), Failed, "in use"},
		{"container runtime does not answer", good, func(s *Subject) { s.RuntimeEndpoint = "unix://" + file }, "container runtime", Failed, file},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := healthy(t, c.server)
			if c.with != nil {
				c.with(&s)
			}
			got := find(t, Examine(t.Context(), s), c.check)
			if got.Result != c.want || !strings.Contains(got.Found, c.found) {
				t.Errorf("got %+v, want %s with %q", got, c.want, c.found)
			}
			if (got.Do != "") != (c.want == Failed || c.want == Warning) {
				t.Errorf("got %q as what to do about a check that is %s", got.Do, c.want)
			}
		})
	}
}

// A statusd that runs holds its own addresses and its own lease.
func TestExamine_RunningProcess_IsNoClash(t *testing.T) {
	s := healthy(t, apiServer{version: "v1.36.3", renewed: time.Second})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s.Socket, s.Addresses = filepath.Join(s.StateDir, "s"), []string{listener.Addr().String()}
	answering, err := unixsocket.Listen(s.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer answering.Close()
	findings := Examine(t.Context(), s)
	for _, check := range []string{"process", "node name", "address " + s.Addresses[0]} {
		if got := find(t, findings, check); got.Result != OK {
			t.Errorf("got %+v, want ok", got)
		}
	}
}

// The examination leaves nothing behind.
func TestExamine_StateDirectory_StaysAsItWas(t *testing.T) {
	s := healthy(t, apiServer{version: "v1.36.3", renewed: time.Hour})
	Examine(t.Context(), s)
	if left, err := os.ReadDir(s.StateDir); err != nil || len(left) > 0 {
		t.Errorf("got %v, %v, want an empty directory", left, err)
	}
}

func TestJudgeUnit(t *testing.T) {
	for shown, want := range map[string]Result{
		"LoadState=loaded\nActiveState=active\n":      OK,
		"LoadState=loaded\nActiveState=failed\n":      Failed,
		"LoadState=bad-setting\nActiveState=inactive": Failed,
		"LoadState=not-found\nActiveState=inactive\n": Skipped,
	} {
		e := examination{Subject: Subject{Unit: "statusd.service"}}
		e.judgeUnit(shown)
		if got := e.findings[0]; got.Result != want {
			t.Errorf("%q: got %+v, want %s", shown, got, want)
		}
	}
}

func TestJudgeKernel(t *testing.T) {
	for _, c := range []struct {
		release string
		node    bool
		want    Result
	}{
		{"6.1.0-18-amd64", true, OK}, {"5.10.0-8-amd64", true, Warning}, {"5.4.0-200-generic", true, Failed}, {"5.4.0-200-generic", false, OK}, {"other", true, Warning},
	} {
		e := examination{Subject: Subject{Root: c.node}}
		if e.judgeKernel(c.release); e.findings[0].Result != c.want {
			t.Errorf("%s: got %+v, want %s", c.release, e.findings[0], c.want)
		}
	}
}

func TestWorst(t *testing.T) {
	for _, c := range []struct {
		results []Result
		want    Result
	}{{nil, OK}, {[]Result{OK, Skipped}, OK}, {[]Result{Warning, OK}, Warning}, {[]Result{Failed, Warning}, Failed}, {[]Result{Warning, Failed}, Failed}} {
		var findings []Finding
		for _, r := range c.results {
			findings = append(findings, Finding{Result: r})
		}
		if got := Worst(findings); got != c.want {
			t.Errorf("%v: got %s, want %s", c.results, got, c.want)
		}
	}
}
