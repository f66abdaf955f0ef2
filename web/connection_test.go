package web_test

import (
	"net/http"
	"strings"
	"testing"
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
	page.screenshot("connection-lost")
	if got := eval[string](page, `getComputedStyle(document.querySelector('main')).filter`); got == "none" {
		// The transition has a delay: the style that is aimed at counts.
		page.until(`document.querySelector('main').getAnimations().length > 0 || getComputedStyle(document.querySelector('main')).filter !== 'none'`)
	}
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
