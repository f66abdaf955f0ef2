//go:build real

package web_test

import (
	"strings"
	"testing"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/view"
)

// What pods are called and say is shown as text, wherever it stands.
func TestHostileTextIsText(t *testing.T) {
	const evil = `<img src=x onerror="document.title='pwned'"><script>document.title='pwned'</script>"'>&lt;`
	pod := notReady(ready("shop", "web-0"), *ago(0))
	pod.Name, pod.Namespace, pod.Status, pod.IP = evil, "shop/../"+evil, evil, evil
	pod.Why = "Pod " + pod.Namespace + "/" + pod.Name + " is not Ready, because " + evil
	pod.Explanation.Causes = []explain.Cause{{Code: evil, Text: evil, Next: &explain.Next{Do: evil, Wait: evil}}}
	pod.ContainerDetails[0].Name, pod.ContainerDetails[0].Message, pod.ContainerDetails[0].Reason = evil, evil, evil
	pod.ContainerDetails[0].Probes[0].Answer = evil
	pod.History = append(pod.History, view.Record{Seq: 99, Observed: *ago(0), Kind: evil, To: evil, Reason: evil, Message: evil, Container: evil, Subject: evil})
	pod.Pod.Annotations = map[string]string{evil: evil}
	f := startFake(t, pod)
	node := aNode()
	node.Name, node.Problems = evil, []string{evil}
	f.setNode(node)

	page := openTab(t, f.page(""))
	page.live()
	page.contains("#pods .name", evil)
	page.contains("#node-strip", evil)
	page.press("n")
	page.contains("#node-title", evil)
	page.goTo("#/")
	page.press("j", enter)
	page.live()
	page.contains("#pod-title", evil)
	page.contains(".sentence", evil)
	page.do(`document.querySelector('details:has(.yaml) summary').click()`)
	page.contains(".yaml", "onerror")
	if found := eval[int](page, `document.querySelectorAll('img, main script').length`); found != 0 {
		t.Errorf("%d elements were made of text", found)
	}
	if title := eval[string](page, `document.title`); strings.Contains(title, "pwned") && !strings.Contains(title, "<img") {
		t.Errorf("the title is %q: a script has run", title)
	}
}
