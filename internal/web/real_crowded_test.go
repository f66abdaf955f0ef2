//go:build real

package web_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/view"
)

// broken is a pod in a crash loop, explained as the real API explains it, with the log of the run that failed and how that ends.
func broken(namespace, name string, last ...string) view.PodDetail {
	d := crashing(namespace, name)
	d.Delivery, d.Explanation.Delivery = view.Freshness{}, nil
	ended := metav1.NewTime(*ago(20 * time.Second))
	pod := d.Pod.DeepCopy()
	pod.Spec.RestartPolicy = v1.RestartPolicyAlways
	pod.Status.StartTime = &metav1.Time{Time: *ago(6 * time.Minute)}
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse, LastTransitionTime: ended}}
	pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "server", RestartCount: 4, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", StartedAt: metav1.NewTime(ended.Add(-2 * time.Second)), FinishedAt: ended}}}}
	log := &explain.Log{Container: "server", Previous: true, Lines: append([]string{
		"2026-03-02 09:14:03 INFO  shop-orders 2.7.1 starting", "2026-03-02 09:14:03 INFO  connecting to postgres at db.shop:5432",
		`2026-03-02 09:14:04 FATAL password authentication failed for user "shop"`}, last...)}
	d.Explanation = explain.Pod(explain.Facts{Now: time.Now(), Pod: pod, Containers: map[string]explain.Container{"server": {Log: log}}})
	code := int32(1)
	d.ContainerDetails[0].ExitCode = &code
	d.Why, d.Brief, d.LogsServed = d.Explanation.Sentence(time.UTC), d.Explanation.Brief(), true
	for i, rule := range []string{"KubePodCrashLooping", "KubePodNotReady", "PodRestartStorm"} {
		d.AlertDetails = append(d.AlertDetails, alertOf(rule, namespace, name, time.Duration(i+1)*time.Minute))
	}
	return d
}

// hostileLine is what a log can say to those who read it in a browser.
const hostileLine = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script> bye`

func alertOf(rule, namespace, pod string, since time.Duration) alert.Alert {
	return alert.Alert{Rule: rule, Severity: "warning", State: alert.Firing, Namespace: namespace, Pod: pod, Scope: "pod", Since: *ago(since), Firing: ago(since - 30*time.Second),
		Annotations: map[string]string{"summary": "Pod " + namespace + "/" + pod + " restarts again and again", "description": "Its container server has ended with exit code 1 four times.", "action": "read the log of the last run"}}
}

// crowded is a node with 500 pods, 60 of which are broken, and 200 alerts.
func crowded(t *testing.T) *fake {
	var pods []view.PodDetail
	node := aNode()
	node.Conditions = append(node.Conditions, v1.NodeCondition{Type: "KubeletHealthy", Status: v1.ConditionTrue, Reason: "Healthy"})
	for i := range 500 {
		namespace, name := fmt.Sprintf("team-%d", i%7), fmt.Sprintf("orders-%03d", i)
		if i%8 == 0 {
			pods = append(pods, broken(namespace, name))
			continue
		}
		pods = append(pods, ready(namespace, name))
	}
	for i := range 200 {
		rule := []string{"KubePodCrashLooping", "KubePodNotReady", "PodRestartStorm", "PodStartSlow"}[i%4]
		node.Alerts = append(node.Alerts, alertOf(rule, fmt.Sprintf("team-%d", i%7), fmt.Sprintf("orders-%03d", i), time.Duration(i+1)*time.Minute))
	}
	node.Firing = len(node.Alerts)
	f := startFake(t, pods...)
	f.setNode(node)
	return f
}

// With 500 pods and 200 alerts a pod's cause, its log and its timeline are on the first screen, the page of the node is a few
// screens long, and nothing is wider than the screen.
func TestCrowdedNode_OnAPhoneAndOnADesktop(t *testing.T) {
	script, err := os.ReadFile(axe)
	if err != nil {
		t.Fatal(err)
	}
	f := crowded(t)
	for _, screen := range []struct {
		name          string
		width, height int64
	}{{"desktop", 1280, 800}, {"phone", 390, 844}} {
		page := openTab(t, f.page("#/pods/team-0/orders-000"))
		page.size(screen.width, screen.height)
		page.live()
		page.contains(".sentence", `exit code 1: FATAL password authentication failed for user "shop"`)
		for _, selector := range []string{".sentence", ".next", ".explanation .log pre", "[aria-label=Timeline] .lane"} {
			if top := eval[float64](page, fmt.Sprintf(`document.querySelector(%q).getBoundingClientRect().top`, selector)); top > float64(screen.height)-20 {
				t.Errorf("%s: %s begins at %.0f pixels of %d: it is not on the first screen", screen.name, selector, top, screen.height)
			}
		}
		if marks := eval[int](page, `document.querySelectorAll('[data-lane=alerts] .mark, [data-lane=alerts] .segment').length`); marks == 0 {
			t.Errorf("%s: the alerts are not on the timeline", screen.name)
		}
		page.screenshot("crowded-pod-" + screen.name)
		page.do(string(script))
		page.lookForBarriers(screen.name + ", the pod")
		page.goTo("#/node")
		page.contains("#node-sections", "PodRestartStorm × 50")
		if height := eval[float64](page, `document.documentElement.scrollHeight`); height > 6*float64(screen.height) {
			t.Errorf("%s: the page of the node is %.0f pixels high, %.1f screens", screen.name, height, height/float64(screen.height))
		}
		if tones := eval[string](page, `[...document.querySelectorAll('[aria-label=Conditions] .flag')].map((f) => f.dataset.tone).join(' ')`); tones != "good good good good good" {
			t.Errorf("%s: the conditions of a node that is well, with a kubelet that is healthy, look %s", screen.name, tones)
		}
		page.screenshot("crowded-node-" + screen.name)
		page.lookForBarriers(screen.name + ", the node")
		page.goTo("#/")
		if shown := eval[int](page, `document.querySelectorAll('#pods tr:not([hidden])').length`); shown != 500 {
			t.Errorf("%s: the table has %d rows, want 500", screen.name, shown)
		}
		page.contains(`[data-key="team-0/orders-000"] .why`, `Exit code 1: FATAL password authentication failed for user "shop" · 4 restarts in 6 min`)
		if cut := eval[int](page, `[...document.querySelectorAll('#pods td.age')].filter((c) => c.scrollWidth > c.clientWidth).length`); cut > 0 {
			t.Errorf("%s: the age is cut in %d rows", screen.name, cut)
		}
		page.screenshot("crowded-table-" + screen.name)
		for _, hash := range []string{"#/", "#/node", "#/pods/team-0/orders-000"} {
			page.goTo(hash)
			if width := eval[int64](page, `document.documentElement.scrollWidth`); width > screen.width {
				t.Errorf("%s: %s is %d pixels wide on a screen of %d", screen.name, hash, width, screen.width)
			}
		}
	}
}

// The log of a container is followed while it is open, and what it says stays text.
func TestLogIsFollowedOnThePage(t *testing.T) {
	f := startFake(t, broken("shop", "orders-5c44", hostileLine))
	f.setLog("shop/orders-5c44/server", "starting", hostileLine)
	page := openTab(t, f.page("#/pods/shop/orders-5c44"))
	page.live()
	page.contains(".explanation .log pre", "<script>")
	page.do(`document.querySelector('[aria-label=Log] details').open = true`)
	page.contains("[aria-label=Log] pre", hostileLine)
	f.setLog("shop/orders-5c44/server", "starting", hostileLine, "accepted order 17")
	page.contains("[aria-label=Log] pre", "accepted order 17")
	page.do(`document.querySelector('[aria-label=Log] input').click()`)
	page.contains("[aria-label=Log] .choice", "There is no such log")
	page.do(`document.querySelector('[aria-label=Log] input').click()`)
	page.contains("[aria-label=Log] pre", "accepted order 17")
	if made := eval[int](page, `document.querySelectorAll('main img, main script').length`); made != 0 {
		t.Errorf("the log has made %d elements", made)
	}
	if title := eval[string](page, `document.title`); title == "taken" {
		t.Error("the log has run a script")
	}
	page.screenshot("pod-log")
}
