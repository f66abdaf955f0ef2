//go:build real

package web_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/statusd/statusd/runtime/process"
)

// patience is how long a test waits for the page at most. It is a bound for tests that fail; no
// test waits for it to pass.
const patience = 10 * time.Minute

// chromium is the browser of all tests of this package, started by the first that needs it.
var chromium struct {
	ctx context.Context
	err error
}

func TestMain(m *testing.M) {
	if process.IsShim() { // the parent of a container of the real node
		os.Exit(process.ShimMain())
	}
	stop := startBrowser()
	code := m.Run()
	stop()
	os.Exit(code)
}

func startBrowser() (stop func()) {
	path, err := findBrowser()
	if err != nil {
		chromium.err = err
		return func() {}
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("force-color-profile", "srgb"))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's sandbox refuses root
	}
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stopBrowser := chromedp.NewContext(allocator)
	chromium.ctx, chromium.err = ctx, chromedp.Do(ctx)
	return func() {
		stopBrowser()
		stopAllocator()
	}
}

func findBrowser() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("Chromium is not installed; the tests of the page need it (Debian: apt-get install chromium)")
}

// tab is a page of its own, with storage of its own.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// action is something that is done to a tab and returns nothing.
type action = chromedp.Action[chromedp.Void]

func openTab(t *testing.T, url string, before ...action) *tab {
	t.Helper()
	if chromium.err != nil {
		t.Fatal(chromium.err)
	}
	ctx, closeTab := chromedp.NewContext(chromium.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(closeTab)
	if err := chromedp.Do(ctx); err != nil { // opens it; its life is not that of the context with a timeout
		t.Fatal(err)
	}
	page := &tab{t, ctx}
	var cancel context.CancelFunc
	page.ctx, cancel = context.WithTimeout(ctx, patience)
	t.Cleanup(cancel)
	page.failOnErrors(ctx)
	page.size(1280, 800)
	page.run(before...)
	page.run(chromedp.Navigate(url))
	return page
}

// failOnErrors fails the test for what the page did not expect, violations of its policy included.
// A server that cannot be reached is not among that.
func (p *tab) failOnErrors(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	messages := chromedp.Console(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m, err := range messages {
			if err != nil {
				return
			}
			if (m.IsException() || m.Type == "error") && m.Source != "network" {
				p.t.Errorf("the console of the page says: %s", m)
			}
		}
	}()
	p.t.Cleanup(func() { cancel(); <-done })
}

func (p *tab) run(actions ...action) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *tab) size(width, height int64) {
	p.t.Helper()
	p.run(chromedp.EmulateViewport(width, height))
}

// eval is the value of an expression, which may be a promise.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// do evaluates an expression for what it does.
func (p *tab) do(expression string) { p.t.Helper(); eval[chromedp.Void](p, expression) }

// until waits for an expression to become true. It looks at each change of the document.
func (p *tab) until(expression string) {
	p.t.Helper()
	script := fmt.Sprintf(`new Promise((resolve) => {
		const holds = () => Boolean(%s);
		if (holds()) return resolve(true);
		const observer = new MutationObserver(() => { if (holds()) { observer.disconnect(); resolve(true); } });
		observer.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
	})`, expression)
	if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](script, chromedp.EvalAwaitPromise)); err != nil {
		p.t.Fatalf("waiting for %s: %v\nthe page shows:\n%s", expression, err, p.seen())
	}
}

// seen is the text of the page, also after the time of the test is over.
func (p *tab) seen() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

// live waits until the page says that it is.
func (p *tab) live() {
	p.t.Helper()
	p.until(`document.documentElement.dataset.connection === 'live'`)
}

// goTo goes to another view and waits until it is live.
func (p *tab) goTo(hash string) {
	p.t.Helper()
	p.do(fmt.Sprintf(`new Promise((resolve) => {
		if (location.hash === %[1]q) return resolve();
		addEventListener('hashchange', resolve, {once: true}); // after that of the page
		location.hash = %[1]q;
	}).then(() => undefined)`, hash))
	p.live()
}

// contains waits until an element has a text.
func (p *tab) contains(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q)`, selector, text))
}

// rows are the names of the pods that the table shows, in its order.
func (p *tab) rows() string {
	p.t.Helper()
	return strings.Join(eval[[]string](p, `[...document.querySelectorAll('#pods tr:not([hidden]) .name')].map((a) => a.textContent)`), " ")
}

// press presses keys, one after the other, as a keyboard does: what a key types follows from the key
// itself, so that the page can prevent it.
func (p *tab) press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		number, text := virtualKeys[key], key
		switch key {
		case enter:
			text = "\r"
		case escape, down:
			text = ""
		}
		for _, event := range []input.DispatchKeyEventParams{
			{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Text: text, WindowsVirtualKeyCode: number},
			{Type: input.DispatchKeyEventTypeKeyUp, Key: key, WindowsVirtualKeyCode: number},
		} {
			if _, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, event); err != nil {
				p.t.Fatal(err)
			}
		}
	}
}

// Keys that have no character.
const (
	enter  = "Enter"
	escape = "Escape"
	down   = "ArrowDown"
)

// virtualKeys are the numbers by which Chromium itself knows keys.
var virtualKeys = map[string]int64{enter: 13, escape: 27, down: 40}

// zone sets the time zone of the browser.
func zone(name string) action {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: name})
		return err
	})
}

// scheme is what the reader's system asks for: light or dark.
func scheme(value string) action {
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}}
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		return err
	})
}

// reload loads the page again, with what it has stored.
var reload = chromedp.Reload()

// screenshot keeps what the page looks like as build output.
func (p *tab) screenshot(name string) {
	p.t.Helper()
	image, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	directory := filepath.Join("..", "..", "build", "screenshots")
	if err := os.MkdirAll(directory, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, name+".png"), image, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
