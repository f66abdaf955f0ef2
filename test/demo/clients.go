package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/statusd/statusd/internal/run"
	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/doors"
)

const (
	followers = 200
	executors = 50
	busy      = time.Minute
	// forever is the command that clients leave running when they vanish; its argument is like no other.
	forever = "98765.4321"
	// few is the allowed number of remaining goroutines or descriptors after all clients are gone: net/http and the runtime of Go keep
	// some for a while.
	few = 8
)

const writer = `apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: main, image: host, command: [sh, -c, 'i=0; while :; do i=$((i+1)); echo $i; sleep 0.1; done']}
`

// load is clients of one statusd, and what they have seen.
type load struct {
	*demo
	daemon *daemon
	client *rest.Config
	pod    string

	lines, commands, vanished atomic.Int64
	mu                        sync.Mutex // guards problems
	problems                  map[string]int
}

// clients lets many clients follow a log and run commands at once, lets some of them vanish, and looks for
// leftovers.
func (d *demo) clients(ctx context.Context) (err error) {
	if err := d.openState(); err != nil {
		return err
	}
	config, err := d.config("clients")
	if err != nil {
		return err
	}
	l := &load{demo: d, pod: "writer-" + config.NodeName, problems: map[string]int{}}
	if err := l.prepare(&config); err != nil {
		return err
	}
	if l.daemon, err = d.startStatusd(config); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stopStatusd(ctx, l.daemon), os.RemoveAll(config.StateDir)) }()
	runs := func() error {
		_, err := l.run(ctx, "true")
		return err
	}
	if err := l.daemon.await(ctx, runs); err != nil {
		return err
	}
	before, err := l.look()
	if err != nil {
		return err
	}
	d.say("%d clients follow a log, and %d run commands one after the other; of every 5 commands one is left running by a client that vanishes\n", followers, executors)
	d.say("%-16s %10s %12s %10s %13s", "", "goroutines", "descriptors", "processes", "resident MiB")
	l.print("before", before)
	if err := l.work(ctx); err != nil {
		return err
	}
	after, err := l.settle(ctx, before)
	if err != nil {
		return err
	}
	l.print("after", after)
	d.say("\n%d lines read, %d commands ended, %d clients vanished", l.lines.Load(), l.commands.Load(), l.vanished.Load())
	return l.verdict(before, after)
}

// prepare writes what a statusd without an API server needs: an authority for clients, and a manifest.
func (l *load) prepare(config *run.Config) error {
	if err := os.RemoveAll(config.StateDir); err != nil {
		return err
	}
	authority, err := doors.NewAuthority(pkix.Name{CommonName: "clients"})
	if err != nil {
		return err
	}
	pair, err := authority.Sign(doors.Certificate(pkix.Name{CommonName: "client"}, time.Now().Add(-time.Hour), time.Now().Add(time.Hour)))
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return err
	}
	config.Manifests = config.StateDir + ".manifests"
	config.Server.ClientCAFile = config.StateDir + ".crt"
	if config.Server.BindAddress, err = freeAddress(); err != nil {
		return err
	}
	l.client = &rest.Config{Host: "https://" + config.Server.BindAddress, TLSClientConfig: rest.TLSClientConfig{
		Insecure: true, // it is on this machine
		CertData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		KeyData:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}}
	return errors.Join(
		os.MkdirAll(config.Manifests, 0o755),
		os.WriteFile(filepath.Join(config.Manifests, "writer.yaml"), []byte(writer), 0o644),
		os.WriteFile(config.Server.ClientCAFile, authority.PEM(), 0o644))
}

// work lets all clients work for a while, and looks now and then.
func (l *load) work(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, busy)
	defer cancel()
	var clients sync.WaitGroup
	for range followers {
		clients.Go(func() { l.follow(ctx) })
	}
	for i := range executors {
		clients.Go(func() { l.execute(ctx, i) })
	}
	for second := 15; campaign.Pause(ctx, 15*time.Second) == nil; second += 15 {
		now, err := l.look()
		if err != nil {
			return err
		}
		l.print(fmt.Sprintf("after %d s", second), now)
	}
	clients.Wait()
	return nil
}

func (l *load) problem(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problems[err.Error()]++
}

// follow reads the log on a connection of its own. Each line must be the one after the line before.
func (l *load) follow(ctx context.Context) {
	config, err := rest.TLSConfigFor(l.client)
	if err != nil {
		l.problem(err)
		return
	}
	config.NextProtos = nil
	transport := &http.Transport{TLSClientConfig: config, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.client.Host+"/containerLogs/default/"+l.pod+"/main?follow=true&tailLines=10", nil)
	if err != nil {
		l.problem(err)
		return
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		l.problem(err)
		return
	}
	defer response.Body.Close()
	scanner := bufio.NewScanner(response.Body)
	for last := 0; scanner.Scan(); {
		n, err := strconv.Atoi(scanner.Text())
		if err != nil || last != 0 && n != last+1 {
			l.problem(fmt.Errorf("a line is missing or damaged"))
			return
		}
		last = n
		l.lines.Add(1)
	}
	if ctx.Err() == nil {
		l.problem(fmt.Errorf("a log ended: %v", scanner.Err()))
	}
}

// execute runs commands one after the other.
func (l *load) execute(ctx context.Context, offset int) {
	for i := offset; ctx.Err() == nil; i++ {
		if i%5 == 0 {
			vanishing, cancel := context.WithTimeout(ctx, time.Duration(200+i%7*100)*time.Millisecond)
			_, _ = l.run(vanishing, "sleep", forever)
			cancel()
			l.vanished.Add(1)
			continue
		}
		want := strings.Repeat(fmt.Sprintln("client", offset, "command", i), 200)
		got, err := l.exec(ctx, strings.NewReader(want), "cat")
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			l.problem(err)
			continue
		}
		if got != want {
			l.problem(fmt.Errorf("cat gave back other data than it got"))
		}
		l.commands.Add(1)
	}
}

func (l *load) run(ctx context.Context, command ...string) (string, error) {
	return l.exec(ctx, nil, command...)
}

func (l *load) exec(ctx context.Context, in io.Reader, command ...string) (string, error) {
	query := url.Values{"command": command, "output": {"1"}}
	if in != nil {
		query.Set("input", "1")
	}
	target, err := url.Parse(l.client.Host + "/exec/default/" + l.pod + "/main?" + query.Encode())
	if err != nil {
		return "", err
	}
	executor, err := remotecommand.NewSPDYExecutor(l.client, http.MethodPost, target)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: &out})
	if ctx.Err() != nil {
		return "", ctx.Err() // out may still be written to
	}
	return out.String(), err
}

// holdings are what statusd has of what can leak.
type holdings struct {
	goroutines, descriptors, processes int
	resident                           int64 // KiB
}

func (l *load) look() (holdings, error) {
	var h holdings
	metrics, err := campaign.Scrape(context.Background(), "http://"+l.daemon.config.HealthzBindAddress+"/metrics")
	if err != nil {
		return h, err
	}
	h.goroutines = int(metrics["go_goroutines"])
	descriptors, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", l.daemon.PID()))
	if err != nil {
		return h, err
	}
	h.descriptors = len(descriptors)
	used, err := consumption(l.daemon.PID())
	if err != nil {
		return h, err
	}
	h.resident = used.resident
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return h, err
	}
	for _, file := range files {
		arguments, err := os.ReadFile(file)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && (worksIn(pid, l.daemon.config.RuntimeDir()) || bytes.Contains(arguments, []byte(forever))) {
			h.processes++ // shims, and what vanished clients have left
		}
	}
	return h, nil
}

func (l *load) print(when string, h holdings) {
	l.say("%-16s %10d %12d %10d %13.1f", when, h.goroutines, h.descriptors, h.processes, float64(h.resident)/1024)
}

// settle waits until statusd has no more than before, for half a minute at most.
func (l *load) settle(ctx context.Context, before holdings) (holdings, error) {
	for deadline := time.Now().Add(30 * time.Second); ; {
		now, err := l.look()
		if err != nil || l.leaked(before, now) == "" || time.Now().After(deadline) {
			return now, err
		}
		if err := campaign.Pause(ctx, 500*time.Millisecond); err != nil {
			return now, err
		}
	}
}

// leaked names what there is more of than before.
func (l *load) leaked(before, after holdings) string {
	switch {
	case after.goroutines > before.goroutines+few:
		return "goroutines"
	case after.descriptors > before.descriptors+few:
		return "descriptors"
	case after.processes > before.processes:
		return "processes"
	}
	return ""
}

func (l *load) verdict(before, after holdings) error {
	var problems []error
	for problem, times := range l.problems {
		problems = append(problems, fmt.Errorf("%d times: %s", times, problem))
	}
	if what := l.leaked(before, after); what != "" {
		problems = append(problems, fmt.Errorf("statusd has leaked %s", what))
	}
	if len(problems) == 0 {
		l.say("nothing is left behind")
	}
	return errors.Join(problems...)
}
