//go:build real

package web_test

import "testing"

// On a phone nothing is wider than the screen.
func TestAPhoneIsWideEnough(t *testing.T) {
	f := startObserved(t)
	page := openTab(t, f.page(""))
	page.size(360, 740)
	for _, view := range []struct{ name, hash string }{{"table", "#/"}, {"pod", "#/pods/shop/orders-5c44"}, {"node", "#/node"}, {"observed-pod", "#/pods/shop/web-0"}} {
		page.goTo(view.hash)
		if width := eval[int](page, `document.documentElement.scrollWidth`); width > 360 {
			t.Errorf("%s: the document is %d pixels wide on a screen of 360", view.name, width)
		}
		page.screenshot("phone-" + view.name)
	}
}

func TestThemesFollowTheSystemOrTheReader(t *testing.T) {
	f := startFake(t, crowd()...)
	page := openTab(t, f.page(""), scheme("dark"))
	page.live()
	const dark, light = "rgb(20, 23, 28)", "rgb(255, 255, 255)"
	background := func(want string) {
		t.Helper()
		if got := eval[string](page, `getComputedStyle(document.body).backgroundColor`); got != want {
			t.Errorf("the background is %s, want %s", got, want)
		}
	}
	background(dark)
	page.screenshot("table-dark")
	page.press("t")
	background(light)
	page.press("t")
	background(dark)
	page.run(scheme("light"))
	background(dark)
	page.run(reload)
	page.live()
	background(dark) // the choice is kept
	page.goTo("#/pods/shop/orders-5c44")
	page.contains(".sentence", "Not Ready")
	page.screenshot("pod-dark")
	page.press("t")
	background(light) // auto again, and the system is light now
}
