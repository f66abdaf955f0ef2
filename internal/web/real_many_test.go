//go:build real

package web_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/view"
)

// With 500 pods a change touches the row of its pod and no other.
func TestOneOf500PodsChangesOneRow(t *testing.T) {
	var pods []view.PodDetail
	for i := range 500 {
		pods = append(pods, ready(fmt.Sprintf("ns-%d", i%7), fmt.Sprintf("pod-%03d", i)))
	}
	f := startFake(t, pods...)
	page := openTab(t, f.page(""))
	page.live()
	if shown := eval[int](page, `document.querySelectorAll('#pods tr:not([hidden])').length`); shown != 500 {
		t.Fatalf("the table has %d rows, want 500", shown)
	}
	if got := eval[string](page, `getComputedStyle(document.querySelector('#pods tr')).contentVisibility`); got != "auto" {
		t.Errorf("rows have content-visibility %q, want auto: a changed cell would lay out all of them", got)
	}
	page.do(`(() => {
		window.touched = new Map();
		window.longTasks = [];
		new PerformanceObserver((list) => longTasks.push(...list.getEntries().map((e) => Math.round(e.duration)))).observe({type: 'longtask'});
		new MutationObserver((list) => {
			for (const m of list) {
				const rows = m.target.id === 'pods' ? [...m.addedNodes, ...m.removedNodes] : [m.target.closest?.('tr') ?? m.target.parentElement.closest('tr')];
				for (const row of rows) touched.set(row.dataset.key, (touched.get(row.dataset.key) ?? 0) + 1);
			}
		}).observe(document.querySelector('#pods'), {subtree: true, childList: true, attributes: true, characterData: true});
	})()`)

	// 200 changes of 20 pods, as fast as they can be sent.
	for round := range 10 {
		var changed []view.PodDetail
		for i := range 20 {
			pod := ready(fmt.Sprintf("ns-%d", i%7), fmt.Sprintf("pod-%03d", i))
			if round%2 == 0 {
				pod = notReady(pod, *ago(time.Duration(round) * time.Second))
			}
			pod.Restarts = int32(round + 1)
			changed = append(changed, pod)
		}
		f.put(changed...)
		page.until(fmt.Sprintf(`[...Array(20).keys()].every((i) => document.querySelector('[data-key="ns-' + i %% 7 + '/pod-' + String(i).padStart(3, '0') + '"] .restarts').textContent === '%d')`, round+1))
	}
	touched := eval[map[string]int](page, `Object.fromEntries(touched)`)
	if len(touched) != 20 {
		t.Errorf("20 pods have changed, and %d rows were touched: %v", len(touched), touched)
	}
	t.Logf("tasks longer than 50 ms during 200 changes: %v ms", eval[[]int](page, `longTasks`))

	// A search hides rows; it makes none.
	page.do(search("pod-1"))
	if shown := eval[int](page, `document.querySelectorAll('#pods tr:not([hidden])').length`); shown != 100 {
		t.Errorf("the search shows %d rows, want 100", shown)
	}
	page.screenshot("table-500")
}
