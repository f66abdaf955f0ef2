//go:build real

package web_test

import "testing"

func TestTheKeyboardIsEnough(t *testing.T) {
	f := startFake(t, crowd()...)
	page := openTab(t, f.page(""))
	page.live()
	focused := func(want string) {
		t.Helper()
		if got := eval[string](page, `document.activeElement.textContent || document.activeElement.id`); got != want {
			t.Errorf("the focus is on %q, want %q", got, want)
		}
	}
	page.press("j")
	focused("report-2")
	page.press("j", down, "k")
	focused("agent-x")
	page.press("G")
	focused("report-3")
	page.press("/")
	focused("search")
	page.press("c", "a", "r", "t", enter)
	focused("cart-7d9f")
	if got := page.rows(); got != "cart-7d9f" {
		t.Errorf("the search leaves %q", got)
	}
	page.press(enter)
	page.contains("#pod-view:not([hidden]) #pod-title", "shop/cart-7d9f")
	page.press(escape)
	page.until(`!document.querySelector('#pods-view').hidden`)
	focused("cart-7d9f")
	if got := eval[string](page, `location.hash`); got != "#/?q=cart" {
		t.Errorf("the table comes back with %q, want the search", got)
	}
	page.press("/", escape)
	page.until(`document.querySelectorAll('#pods tr:not([hidden])').length === 10`)
	page.press("?")
	page.until(`document.querySelector('#help').open`)
	page.press(escape)
	page.until(`!document.querySelector('#help').open`)
}

// A row that moves because its pod has changed keeps the focus.
func TestTheFocusFollowsAMovedRow(t *testing.T) {
	f := startFake(t, ready("shop", "a"), ready("shop", "b"), ready("shop", "c"))
	page := openTab(t, f.page(""))
	page.live()
	page.press("G")
	f.put(notReady(ready("shop", "c"), *ago(0)))
	page.contains("#pods tr:first-child", "Not Ready")
	if got := eval[string](page, `document.activeElement.textContent`); got != "c" {
		t.Errorf("after the move the focus is on %q, want c", got)
	}
}
