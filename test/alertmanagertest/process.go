package alertmanagertest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Process is a running Alertmanager.
type Process struct {
	// URL is where it is served.
	URL  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	log  chan string   // its log, once it has ended
}

// Config is a configuration that sends everything, grouped by alertname, to a webhook at once.
func Config(webhook string) string {
	return fmt.Sprintf(`
route: {receiver: sink, group_by: [alertname], group_wait: 10ms, group_interval: 100ms, repeat_interval: 1h}
receivers: [{name: sink, webhook_configs: [{url: %q, send_resolved: true}]}]
`, webhook)
}

var listening = regexp.MustCompile(`msg="Listening on" address=(127\.0\.0\.1:\d+)`)

// Start runs an Alertmanager with its state in dir, which may be that of one before, until Stop.
func Start(dir, config string) (*Process, error) {
	program, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		return nil, errors.New("prometheus-alertmanager is missing; it is in Debian's package of that name: apt-get install prometheus-alertmanager")
	}
	file := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	p := &Process{done: make(chan struct{}), log: make(chan string, 1)}
	p.cmd = exec.Command(program, "--config.file="+file, "--storage.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0", "--cluster.listen-address=", "--log.level=info")
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	address := make(chan string, 1)
	started := make(chan error)
	go func() {
		// The kernel sends the signal for the death of the parent when the thread that started the child
		// ends, so that this one stays until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.follow(output, address)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	found, ok := <-address
	if !ok {
		<-p.done
		return nil, fmt.Errorf("alertmanager did not start:\n%s", <-p.log)
	}
	p.URL = "http://" + found
	return p, nil
}

// follow reads the log until its end, and sends the address once it is known.
func (p *Process) follow(output io.Reader, address chan<- string) {
	defer close(p.done)
	var log strings.Builder
	lines := bufio.NewScanner(output)
	known := false
	for lines.Scan() {
		if log.Len() < 1<<20 {
			log.WriteString(lines.Text() + "\n")
		}
		if found := listening.FindStringSubmatch(lines.Text()); found != nil && !known {
			known = true
			address <- found[1]
		}
	}
	close(address)
	_, _ = io.Copy(io.Discard, output) // after a line that is too long
	_ = p.cmd.Wait()
	p.log <- log.String()
}

// Kill ends it at once, as a crash does.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Stop stops it gracefully, so that it keeps its state.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.done
}

// Alert is what Alertmanager knows of an alert.
type Alert struct {
	Labels       map[string]string
	Annotations  map[string]string
	StartsAt     time.Time
	EndsAt       time.Time
	GeneratorURL string
	Status       struct{ State string }
}

// Alerts returns the alerts that are not over.
func (p *Process) Alerts(ctx context.Context) ([]Alert, error) {
	var alerts []Alert
	return alerts, p.get(ctx, "/api/v2/alerts", &alerts)
}

// Group is what Alertmanager notifies about together.
type Group struct {
	Labels map[string]string
	Alerts []Alert
}

// Groups returns the groups of alerts.
func (p *Process) Groups(ctx context.Context) ([]Group, error) {
	var groups []Group
	return groups, p.get(ctx, "/api/v2/alerts/groups", &groups)
}

func (p *Process) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+path, nil)
	if err != nil {
		return err
	}
	request.Close = true // nothing is left behind when it ends
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}
