//go:build real

package web_test

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/internal/run"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process"
	"github.com/statusd/statusd/test/binaries"
	"github.com/statusd/statusd/test/freeport"
	"github.com/statusd/statusd/test/nodetest"
)

// A real node: the process of the web example is killed, and the page says why its pod is not Ready. The time that
// this takes is printed; what it should stay below is a second.
func TestThePageSaysWhyAKilledPodIsNotReady(t *testing.T) {
	c, server := startNode(t)
	page := openTab(t, "http://"+c.HealthzBindAddress+"/")
	page.live()
	const row = `document.querySelector('[data-key="default/web-page"]')`
	page.until(row + `?.textContent.includes('● Ready')`)
	// The page itself notes when it says so.
	page.do(`(() => {
		const observer = new MutationObserver(() => {
			const text = ` + row + `?.textContent ?? '';
			if (!window.said && text.includes('Not Ready') && text.includes('Exit code 137 (SIGKILL)')) window.said = {at: Date.now(), text};
		});
		observer.observe(document.querySelector('#pods'), {subtree: true, childList: true, attributes: true, characterData: true});
	})()`)
	pid := pidOf(t, server)
	killed := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	page.until(`window.said`)
	t.Logf("%d ms after the process was killed the page said: %s",
		eval[int64](page, `window.said.at`)-killed.UnixMilli(), eval[string](page, `window.said.text`))

	if text := eval[string](page, `window.said.text`); strings.Contains(text, "the node has killed it") {
		t.Errorf("this test has killed it, not the node for its liveness probe: %s", text)
	}

	// It starts again, and its page has what happened.
	page.until(row + `.textContent.includes('● Ready')`)
	page.goTo("#/pods/default/web-page")
	page.contains(".sentence", "Ready since")
	page.contains(`[aria-label=Containers]`, "running")
	page.contains("#pod-line", "1 restart")
	page.contains(`[aria-label=Probes]`, "readiness")
	page.until(`document.querySelector('[data-lane=server] .mark')`)
	page.until(`document.querySelector('[data-lane="readiness probe"]')`)
	page.screenshot("real-pod")
	page.goTo("#/node")
	page.contains("#node-sections", "Allocatable")
	allAgree(t, page, c)
}

// startNode runs an agent with the web example as its static pod, and returns the config of the one and the address of
// the other.
func startNode(t *testing.T) (c *run.Config, server string) {
	t.Helper()
	dir := t.TempDir()
	config := run.Default()
	c = &config
	c.NodeName = "page"
	c.AllowPodsWithoutIsolation = true
	c.StateDir, c.Manifests = filepath.Join(dir, "state"), filepath.Join(dir, "manifests")
	c.Server.BindAddress = ""
	c.Eviction.Hard = eviction.Disabled()
	c.HealthzBindAddress, server = freeport.Address(t), freeport.Address(t)
	writeExample(t, c.Manifests, binaries.Path(t, binaries.ExampleServer), server)
	node, err := run.New(*c, agent.Options{
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		NewRuntime: func(node agent.NodeServices) (runtime.Runtime, error) {
			return process.New(process.Options{
				Dir: node.Dir, Version: node.Version, Addresses: node.Addresses, Allocatable: node.Allocatable,
				Objects: node.Objects, Event: node.Event, Logger: node.Logger, AllowPodsWithoutIsolation: true,
			})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	nodetest.EndContainers(t, c.RuntimeDir(), agent.EndContainers)
	nodetest.Run(t, node.Run)
	return c, server
}

// writeExample writes the example of make run with a program and a port of this test.
func writeExample(t *testing.T, manifests, binary, server string) {
	t.Helper()
	text, err := os.ReadFile("../../examples/pods/web.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, line := range strings.Split(string(text), "\n") {
		if before, _, ok := strings.Cut(line, "command: "); ok {
			line = fmt.Sprintf("%scommand: [%q, --address, %q]", before, binary, server)
		}
		_, port, _ := net.SplitHostPort(server)
		lines = append(lines, strings.ReplaceAll(line, "18080", port))
		if before, _, ok := strings.Cut(line, "periodSeconds: "); ok {
			lines = append(lines, before+"timeoutSeconds: 60") // a machine under load is no reason to restart it
		}
	}
	if err := os.Mkdir(manifests, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(manifests, "web.yaml"), []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// pidOf asks the example for its process ID.
func pidOf(t *testing.T, server string) (pid int) {
	t.Helper()
	_, body := nodetest.Get(t, server, "")
	if _, err := fmt.Sscanf(body, "hello from process %d", &pid); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return pid
}
