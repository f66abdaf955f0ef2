package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/child"
	"github.com/statusd/statusd/test/freeport"
)

// network is the link between the agent and the gateway: toxiproxy, a process of its own, by its HTTP API.
type network struct {
	address string // that the agent dials
	api     string
	start   func() error
	stop    func()
	toxics  atomic.Int64 // names
	mu      sync.Mutex   // guards process, but at the begin and the end
	process *child.Process
}

const link = "link"

func startNetwork(ctx context.Context, binary, upstream string) (*network, error) {
	port, held, err := freeport.Take()
	if err != nil {
		return nil, err
	}
	apiPort, apiHeld, err := freeport.Take()
	if err != nil {
		return nil, err
	}
	n := &network{address: fmt.Sprintf("127.0.0.1:%d", port), api: fmt.Sprintf("http://127.0.0.1:%d", apiPort)}
	n.start = func() error {
		var err error
		n.process, err = child.Start(exec.Command(binary, "-host", "127.0.0.1", "-port", strconv.Itoa(apiPort)), syscall.SIGKILL)
		if err != nil {
			return fmt.Errorf("toxiproxy: %w", err)
		}
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if err := campaign.Await(bounded, 50*time.Millisecond, func() error {
			return n.post("/proxies", map[string]any{"name": link, "listen": n.address, "upstream": upstream, "enabled": true})
		}); err != nil {
			n.process.Kill()
			return fmt.Errorf("toxiproxy: %w", err)
		}
		return nil
	}
	n.stop = func() { n.process.Kill(); held.Close(); apiHeld.Close() }
	if err := n.start(); err != nil {
		held.Close()
		apiHeld.Close()
		return nil, err
	}
	return n, nil
}

// restart replaces a toxiproxy that does not end a fault: its API may answer nothing but 503 from then on. All faults of the network end.
func (n *network) restart() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.process.Kill()
	return n.start()
}

// toxic makes the link misbehave until the returned function is called.
func (n *network) toxic(kind, stream string, attributes map[string]any) (undo func() error, err error) {
	name := fmt.Sprintf("%s-%d", kind, n.toxics.Add(1)) // two of a kind may overlap
	toxic := map[string]any{"name": name, "type": kind, "stream": stream, "toxicity": 1, "attributes": attributes}
	if err := n.post("/proxies/"+link+"/toxics", toxic); err != nil {
		return nil, err
	}
	return func() error { return n.request(http.MethodDelete, "/proxies/"+link+"/toxics/"+name, nil) }, nil
}

// open lets connections through, or refuses them and ends those that there are.
func (n *network) open(open bool) error {
	return n.post("/proxies/"+link, map[string]any{"enabled": open})
}

func (n *network) post(path string, body any) error { return n.request(http.MethodPost, path, body) }

func (n *network) request(method, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, n.api+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if method == http.MethodDelete && response.StatusCode == http.StatusNotFound { // ended with the toxiproxy before this one
		return nil
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	return nil
}
