//go:build real

package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A restart of statusd: the page says since when it is not live, stops the ages, and is live again
// by itself, without pods that are gone.
func TestThePageSaysThatItsConnectionIsLost(t *testing.T) {
	gone := ready("shop", "gone-meanwhile")
	f := startFake(t, ready("shop", "web-0"), gone)
	page := openTab(t, f.page(""))
	page.live()
	f.stop()
	page.until(`document.documentElement.dataset.connection === 'lost'`)
	page.contains("#lost:not([hidden])", "Connection lost since")
	page.contains("#lost", "What is shown is as of then.")
	page.contains("#connection", "▲ Not live")
	page.until(`document.title.startsWith('(not live)')`)
	page.do(`Promise.all(document.querySelector('main').getAnimations().map((a) => a.finished)).then(() => undefined)`)
	if got := eval[string](page, `getComputedStyle(document.querySelector('main')).filter`); got != "grayscale(1)" {
		t.Errorf("what is not live is drawn with the filter %q, want gray", got)
	}
	page.screenshot("connection-lost")
	f.mu.Lock()
	delete(f.pods, key(gone))
	f.pods["shop/new"] = ready("shop", "new")
	f.mu.Unlock()
	f.start()
	page.live()
	if got, want := page.rows(), "new web-0"; got != want {
		t.Errorf("after the restart the table shows %q, want %q", got, want)
	}
	page.until(`document.querySelector('#lost').hidden`)
}

// A connection that was cut is resumed where it was: the server sends no list again.
func TestAWatchIsResumed(t *testing.T) {
	f := startFake(t, ready("shop", "web-0"))
	page := openTab(t, f.page(""))
	page.live()
	f.put(ready("shop", "web-1"))
	page.until(`document.querySelectorAll('#pods tr').length === 2`)
	page.goTo("#/pods/shop/web-1")
	page.contains("#pod-badge:not([hidden])", "Ready")
	f.put(ready("shop", "web-2"))
	page.goTo("#/")
	page.until(`document.querySelectorAll('#pods tr').length === 3`)
	watches := strings.Join(f.watched(), " ")
	if want := " pod=shop%2Fweb-1 since=1-1"; watches != want {
		t.Errorf("the watches asked %q, want %q: a list, the pod, and what was missed", watches, want)
	}
}

func TestAServerWithTroubleIsNamedAndTriedAgain(t *testing.T) {
	f := startFake(t, ready("shop", "web-0"))
	f.refuseWith(http.StatusServiceUnavailable)
	page := openTab(t, f.page(""))
	page.contains("#lost:not([hidden])", "statusd cannot be reached. Trying again; last error: the fake refuses.")
	if got := page.rows(); got != "" {
		t.Errorf("without an answer the table shows %q", got)
	}
	f.refuseWith(0)
	page.live()
	if got := page.rows(); got != "web-0" {
		t.Errorf("the table shows %q, want web-0", got)
	}
}

// A page that is not visible closes its watch, of which a browser allows few per server, and catches up when it is
// seen again.
func TestAHiddenPageClosesItsWatch(t *testing.T) {
	f := startFake(t, ready("shop", "web-0"))
	page := openTab(t, f.page(""))
	page.live()
	const hide = `(() => {
		Object.defineProperty(document, 'hidden', {configurable: true, get: () => %t});
		document.dispatchEvent(new Event('visibilitychange'));
	})()`
	page.do(fmt.Sprintf(hide, true))
	<-f.left
	f.put(ready("shop", "web-1"))
	if got := page.rows(); got != "web-0" {
		t.Errorf("the hidden page shows %q", got)
	}
	page.do(fmt.Sprintf(hide, false))
	page.live()
	if got := page.rows(); got != "web-0 web-1" {
		t.Errorf("the page shows %q when it is seen again", got)
	}
}

// Ages are those of the node, whatever the clock of the browser says.
func TestAWrongClockIsNamed(t *testing.T) {
	pod := ready("shop", "web-0")
	created := pod.Created.Add(-time.Hour)
	pod.Created = &created
	f := startFake(t, pod)
	f.setClock(90*time.Minute + 30*time.Second)
	page := openTab(t, f.page(""))
	page.live()
	page.contains("#lost:not([hidden])", "The clock of this browser is 1 h 30 min behind that of statusd.")
	page.contains("#pods .age", "13h") // 11 hours ago by the clock of the browser
}

// What a sentence says of time is asked for again, without an event.
func TestSentencesStayTrue(t *testing.T) {
	f := startFake(t, crashing("shop", "orders-5c44"))
	page := openTab(t, f.page(""))
	page.live()
	page.contains("#pods .why", "ended 20 s ago")
	f.mu.Lock()
	pod := f.pods["shop/orders-5c44"]
	pod.Why = strings.ReplaceAll(pod.Why, "20 s ago", "25 s ago")
	f.pods["shop/orders-5c44"] = pod
	f.mu.Unlock()
	page.contains("#pods .why", "ended 25 s ago")
}
