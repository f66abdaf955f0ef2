//go:build real

package web_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/view"
)

// crowd is a node in the middle of a bad day.
func crowd() []view.PodDetail {
	return []view.PodDetail{
		ready("shop", "web-0"), ready("shop", "web-1"), notReady(ready("shop", "cart-7d9f"), *ago(70 * time.Second)), crashing("shop", "orders-5c44"),
		inState(ready("kube-system", "proxy-edge-17"), explain.StateReady, "Running", "it serves"),
		inState(ready("batch", "import-29"), explain.StateInitializing, "Init:1/2", `init container "fetch" is running`),
		inState(ready("batch", "report-3"), explain.StateSucceeded, "Completed", "all containers have done their work"),
		inState(ready("batch", "report-2"), explain.StateFailed, "Error", `container "report" ended with exit code 1`),
		inState(ready("shop", "search-0"), explain.StateTerminating, "Terminating", `container "search" has not stopped, 12 s of its grace are left`),
		inState(ready("infra", "agent-x"), explain.StateRejected, "OutOfcpu", "the node has not enough cpu: requested 9, free 4.55"),
	}
}

func TestTheTableFollowsThePods(t *testing.T) {
	web0 := ready("shop", "web-0")
	f := startFake(t, web0, ready("shop", "web-1"))
	page := openTab(t, f.page(""))
	page.live()
	if got, want := page.rows(), "web-0 web-1"; got != want {
		t.Fatalf("the table shows %q, want %q", got, want)
	}
	f.put(notReady(ready("shop", "web-1"), *ago(time.Second)))
	page.contains(`#pods tr:first-child`, "▲ Not Ready")
	page.contains(`#pods tr:first-child .why`, "Container \"server\" is not ready: its readiness probe")
	if got, want := page.rows(), "web-1 web-0"; got != want {
		t.Errorf("what needs attention comes first: got %q, want %q", got, want)
	}
	f.put(ready("shop", "web-2"))
	page.until(shown(3))
	f.remove(web0)
	page.until(shown(2))
	if got, want := page.rows(), "web-1 web-2"; got != want {
		t.Errorf("the table shows %q, want %q", got, want)
	}
	again := ready("shop", "web-0")
	again.UID = "another"
	f.put(again)
	page.until(shown(3))
	f.remove(web0) // the pod before it, not this one
	f.put(ready("shop", "web-3"))
	page.until(shown(4))
}

// shown is the condition that the table shows so many pods.
func shown(count int) string {
	return fmt.Sprintf(`document.querySelectorAll('#pods tr:not([hidden])').length === %d`, count)
}

// A pod that is gone leaves the table, and is shown on request as long as it is remembered.
func TestPodsThatAreGoneAreShownOnRequest(t *testing.T) {
	web0 := ready("shop", "web-0")
	f := startFake(t, web0, ready("shop", "web-1"))
	page := openTab(t, f.page(""))
	page.live()
	f.remove(web0)
	page.until(shown(1))
	page.contains("[data-state=Gone]:not([hidden])", "Gone 1")
	page.contains("[data-state='']", "All 1")
	page.do(`document.querySelector('[data-state=Gone]').click()`)
	if got, want := page.rows(), "web-0"; got != want {
		t.Errorf("gone are %q, want %q", got, want)
	}
	page.contains("#pods tr:not([hidden]) .why", "Is gone; the last thing known of it: it was deleted.")
	page.press("j", enter)
	page.contains("#pod-view:not([hidden]) #pod-badge", "✓ Gone")
	page.contains(".sentence", "Gone since ")
}

func TestTheTableIsFilteredSearchedAndSorted(t *testing.T) {
	f := startFake(t, crowd()...)
	page := openTab(t, f.page(""))
	page.live()
	page.size(1200, 470)
	page.screenshot("table-light")
	if got, want := page.rows(), "report-2 agent-x cart-7d9f orders-5c44 search-0 import-29 proxy-edge-17 web-0 web-1 report-3"; got != want {
		t.Errorf("the order by state is\n%s, want\n%s", got, want)
	}
	steps := []struct{ what, do, want string }{
		{"a state", `document.querySelector('[data-state=NotReady]').click()`, "cart-7d9f orders-5c44"},
		{"the state again", `document.querySelector('[data-state=NotReady]').click()`, "report-2 agent-x cart-7d9f orders-5c44 search-0 import-29 proxy-edge-17 web-0 web-1 report-3"},
		{"a namespace", `(() => { const s = document.querySelector('#namespace'); s.value = 'batch'; s.dispatchEvent(new Event('change')); })()`, "report-2 import-29 report-3"},
		{"its search", search("import"), "import-29"},
		{"all namespaces", `(() => { const s = document.querySelector('#namespace'); s.value = ''; s.dispatchEvent(new Event('change')); })()`, "import-29"},
		{"a cause", search("no such TABLE"), "orders-5c44"},
		{"two words", search("shop running"), "cart-7d9f web-0 web-1"},
		{"nothing", search("there is no such thing"), ""},
		{"no search", search(""), "report-2 agent-x cart-7d9f orders-5c44 search-0 import-29 proxy-edge-17 web-0 web-1 report-3"},
		{"by name", `document.querySelector('th[data-column=pod] button').click()`, "import-29 report-2 report-3 agent-x proxy-edge-17 cart-7d9f orders-5c44 search-0 web-0 web-1"},
		{"by name, reversed", `document.querySelector('th[data-column=pod] button').click()`, "web-1 web-0 search-0 orders-5c44 cart-7d9f proxy-edge-17 agent-x report-3 report-2 import-29"},
		{"by lag", `document.querySelector('th[data-column=lag] button').click()`, "orders-5c44 import-29 report-2 report-3 agent-x proxy-edge-17 cart-7d9f search-0 web-0 web-1"},
		{"by restarts", `document.querySelector('th[data-column=restarts] button').click()`, "orders-5c44 import-29 report-2 report-3 agent-x proxy-edge-17 cart-7d9f search-0 web-0 web-1"},
	}
	for _, step := range steps {
		page.do(step.do)
		if got := page.rows(); got != step.want {
			t.Errorf("%s: the table shows\n%s, want\n%s", step.what, got, step.want)
		}
	}
	if got := eval[string](page, `document.querySelector('th[data-column=restarts]').getAttribute('aria-sort')`); got != "ascending" {
		t.Errorf("aria-sort of the column is %q", got)
	}
	link := openTab(t, f.page("#/?q=report&state=Failed&sort=age"))
	link.live()
	if got, want := link.rows(), "report-2"; got != want {
		t.Errorf("the address with a filter shows %q, want %q", got, want)
	}
}

func search(text string) string {
	return `(() => { const s = document.querySelector('#search'); s.value = '` + text + `'; s.dispatchEvent(new Event('input')); })()`
}

func TestTheNodeIsShown(t *testing.T) {
	f := startFake(t, crowd()...)
	page := openTab(t, f.page(""))
	page.live()
	page.contains("#node-strip", "Ready True")
	page.contains("#node-strip", "3.25 of 7.8")
	page.contains("#node-strip", "API server up to date")
	node := aNode()
	node.Conditions[1].Status = "True"
	node.Problems = []string{"the state directory is read-only"}
	node.Delivery = view.NodeDelivery{Pending: 3, OldestSeconds: 21, LastError: "503 Service Unavailable"}
	f.setNode(node)
	page.contains("#node-strip", "▲ MemoryPressure True")
	page.contains("#node-strip", "▲ the state directory is read-only")
	page.contains("#node-strip", "3 pods have unsent changes, the oldest for 21s")
	page.press("n")
	page.contains("#node-view:not([hidden])", "11 GiB")
	page.contains("#node-view", "10.0.3.17")
	page.screenshot("node-light")
}

// An answer that was asked for before an event and comes after it does not take the page back.
func TestALateAnswerDoesNotReplaceNews(t *testing.T) {
	f := startFake(t, ready("shop", "web-0"))
	f.holdNode()
	page := openTab(t, f.page("#/node"))
	page.live()
	page.contains("[aria-label=Problems]", "None.")
	old := "None."
	for i := 1; ; i++ {
		<-f.asked // by the page, which asks for the wording every few seconds
		node, news := aNode(), fmt.Sprintf("disk %d is full", i)
		node.Problems = []string{news}
		f.setNode(node)
		page.contains("[aria-label=Problems]", news)
		page.do(fmt.Sprintf(`(() => {
			const problems = document.querySelector('[aria-label=Problems]');
			new MutationObserver(() => { window.wentBack ||= problems.textContent.includes(%q); }).observe(problems, {subtree: true, childList: true, characterData: true});
		})()`, old))
		if f.releaseNode() {
			break
		}
		old = news // the page waits for seconds only: the same with its next question
	}
	<-f.asked // the next time: the answer before was taken, or not
	if eval[bool](page, `Boolean(window.wentBack)`) {
		t.Error("an old answer has replaced the news")
	}
}
