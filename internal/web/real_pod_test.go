//go:build real

package web_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/statusd/statusd/internal/view"
)

func TestThePageOfAPodExplainsIt(t *testing.T) {
	f := startFake(t, notReady(ready("shop", "cart-7d9f"), *ago(70 * time.Second)))
	page := openTab(t, f.page("#/pods/shop/cart-7d9f"))
	page.live()
	page.contains("#pod-title", "shop/cart-7d9f")
	page.contains(".sentence", `, because container "server" is not ready: its readiness probe (GET http://:8080/healthz) has failed 14 times`)
	chain := eval[[]string](page, `[...document.querySelectorAll('.chain .code')].map((c) => c.textContent)`)
	if got, want := strings.Join(chain, " ← "), "ContainersNotReady ← ReadinessProbeFailing"; got != want {
		t.Errorf("the chain is %s, want %s", got, want)
	}
	page.contains(".next", "To do")
	page.contains(".next", "check that the container listens on the port that is probed")
	page.contains("[aria-label=Probes]", "14 failed")
	page.contains("[aria-label=Delivery]", "has the newest status")
	page.screenshot("pod-light")

	f.put(ready("shop", "cart-7d9f"))
	page.contains("#pod-badge", "● Ready")
	page.until(`document.querySelectorAll('.chain').length === 0`)
}

func TestTheTimelineHasALaneForEachContainerAndCondition(t *testing.T) {
	f := startFake(t, crashing("shop", "orders-5c44"))
	page := openTab(t, f.page("#/pods/shop/orders-5c44"))
	page.live()
	page.size(1200, 860)
	page.screenshot("pod-crashing-light")
	lanes := eval[[]string](page, `[...document.querySelectorAll('.lane')].map((l) => l.dataset.kind + ' ' + l.dataset.lane)`)
	want := "Phase phase, Condition PodScheduled, Condition Initialized, Condition ContainersReady, Condition Ready, Container server, Delivery API server behind"
	if got := strings.Join(lanes, ", "); got != want {
		t.Errorf("the lanes are\n%s, want\n%s", got, want)
	}
	segments := eval[[]string](page, `[...document.querySelectorAll('[data-lane=server] .segment')].map((s) => s.textContent)`)
	if got, want := strings.Join(segments[:5], ", "), "ContainerCreating, running, not ready, Error, CrashLoopBackOff, running, not ready"; got != want {
		t.Errorf("the container begins with %s, want %s", got, want)
	}
	if marks := eval[int](page, `document.querySelectorAll('[data-lane=server] .mark').length`); marks != 4 {
		t.Errorf("the lane of the container has %d marks, want one for each of 4 restarts", marks)
	}
	page.contains(`[data-kind=Delivery] .segment[data-tone=bad]`, "not accepted yet")

	// A change becomes another segment, and all but the last end where the next begins.
	f.put(withRecord(crashing("shop", "orders-5c44"), view.Record{Kind: "Container", Container: "server", From: "waiting", To: "running"}))
	page.until(fmt.Sprintf(`document.querySelectorAll('[data-lane=server] .segment').length === %d`, len(segments)+1))
	gaps := eval[[]float64](page, `(() => {
		const shown = [...document.querySelectorAll('[data-lane=server] .segment:not([hidden])')].map((s) => [parseFloat(s.style.left), parseFloat(s.style.width)]);
		return shown.slice(1).map(([left], i) => Math.abs(left - shown[i][0] - shown[i][1]));
	})()`)
	for i, gap := range gaps {
		if gap > 0.01 {
			t.Errorf("between segment %d and the next is a gap of %f %%", i, gap)
		}
	}
}

func withRecord(pod view.PodDetail, r view.Record) view.PodDetail {
	r.Seq, r.Observed = uint64(len(pod.History)+1), time.Now().UTC()
	pod.History = append(append([]view.Record{}, pod.History...), r)
	return pod
}

func TestThePodIsShownAsYAML(t *testing.T) {
	pod := ready("shop", "web-0")
	pod.Pod.Annotations = map[string]string{"empty": "", "number": "017", "yes": "no", "null": "~", "lines": "one\n two\n\nthree", "html": "<b>&amp;</b>", "colon": "a: b #c", "bell": "\a\u0085\u2028", "trailing": "x \n"}
	f := startFake(t, pod)
	page := openTab(t, f.page("#/pods/shop/web-0"))
	page.live()
	page.do(`document.querySelector('details:has(.yaml) summary').click()`)
	page.contains(".yaml", "kind: Pod")
	var got v1.Pod
	if err := yaml.UnmarshalStrict([]byte(eval[string](page, `document.querySelector('.yaml').textContent`)), &got); err != nil {
		t.Fatal(err)
	}
	var want v1.Pod
	if err := json.Unmarshal([]byte(encode(pod.Pod)), &want); err != nil {
		t.Fatal(err)
	}
	want.APIVersion, want.Kind = "v1", "Pod"
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the YAML says\n%+v, want\n%+v", got, want)
	}
}

func TestAPodThatIsUnknownOrGone(t *testing.T) {
	pod := ready("shop", "web-0")
	f := startFake(t, pod)
	page := openTab(t, f.page("#/pods/shop/nothing"))
	page.contains("#pod-missing:not([hidden])", "statusd does not know pod shop/nothing")
	page.goTo("#/pods/shop/web-0")
	page.live()
	page.contains("#pod-badge", "Ready")
	gone := pod
	gone.Gone = ago(0)
	gone.Pod = nil
	f.put(gone)
	page.contains("#pod-line", "gone for")
}

// Times are those of the reader's zone, or UTC.
func TestTimesHaveAZone(t *testing.T) {
	pod := notReady(ready("shop", "web-0"), time.Date(2026, 3, 1, 21, 30, 5, 0, time.UTC))
	f := startFake(t, pod)
	page := openTab(t, f.page("#/pods/shop/web-0"), zone("Asia/Kolkata"))
	page.live()
	page.contains("#zone", "UTC+05:30")
	page.contains(".sentence", "Not Ready since 2026-03-02 03:00:05, because")
	page.press("u")
	page.contains(".sentence", "Not Ready since 2026-03-01 21:30:05, because")
	page.contains("#zone", "UTC")
	page.run(reload)
	page.live()
	page.contains(".sentence", "Not Ready since 2026-03-01 21:30:05, because")
}
