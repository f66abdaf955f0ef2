//go:build real

package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/internal/web"
	"github.com/statusd/statusd/test/binaries"
)

// found is a node as an queryapi.Server asks for it, made of the samples of the page.
type found struct {
	pods []view.PodDetail
	node view.NodeDetail
}

func (n found) UIDs() (uids []types.UID) {
	for i := range n.pods {
		uids = append(uids, n.pods[i].UID)
	}
	return uids
}

func (n found) Pod(uid types.UID) (view.Pod, bool) {
	i := slices.IndexFunc(n.pods, func(p view.PodDetail) bool { return p.UID == uid })
	if i < 0 {
		return view.Pod{}, false
	}
	pod := n.pods[i].Pod.DeepCopy()
	pod.UID = uid
	return view.Pod{Facts: explain.Facts{Now: time.Now(), Pod: pod}}, true
}

func (n found) Gone() []view.PodHistory { return nil }
func (n found) History(string, string) (view.PodHistory, bool) {
	return view.PodHistory{}, false
}
func (n found) Node() view.NodeDetail                              { return aNode() }
func (n found) Watch(ctx context.Context, _ func(types.UID)) error { <-ctx.Done(); return nil }

// Pictures and the reports are those of the samples.
func (n found) Pictures(uid types.UID) []audit.Picture {
	i := slices.IndexFunc(n.pods, func(p view.PodDetail) bool { return p.UID == uid })
	return n.pods[i].Pictures
}

func (n found) Report() audit.Report {
	report := audit.Report{At: time.Now(), Node: n.node.Name, Sides: n.node.Sides, Differences: n.node.Differences}
	for i := range n.pods {
		report.Differences = append(report.Differences, n.pods[i].Differences...)
	}
	return report
}

type foundGuard struct{ report guard.Report }

func (g foundGuard) Report() guard.Report { return g.report }

type foundAlerts struct {
	view.AlertSource // silences are not asked for
	list             []alert.Alert
}

func (a foundAlerts) Alerts() []alert.Alert { return a.list }

// The page, the command and curl say the same of a node that is not as the API reports it.
func TestAllAgreeOnWhatWasFound(t *testing.T) {
	pods := []view.PodDetail{untrue(ready("shop", "web-0")), ready("shop", "web-1")}
	node := observedNode()
	source := found{pods, node}
	server, err := queryapi.New(queryapi.Options{Sources: view.Sources{Source: source, Audit: source, Guard: foundGuard{*node.Kubelet}, Alerts: foundAlerts{list: node.Alerts}}, Page: web.Handler()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	serving := httptest.NewServer(server.Handler())
	t.Cleanup(func() {
		cancel()
		serving.CloseClientConnections()
		serving.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	statusd := binaries.Path(t, binaries.Statusd)
	ask := func(into any, want int, args ...string) {
		t.Helper()
		output, err := exec.Command(statusd, append(args, "-o", "json", "--server", serving.URL)...).Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == want {
			err = nil
		}
		if err == nil {
			err = json.Unmarshal(output, into)
		}
		if err != nil {
			t.Fatalf("statusd %v: %v\n%s", args, err, output)
		}
	}

	page := openTab(t, serving.URL)
	page.live()
	var curl, command audit.Report
	fetchInto(t, serving.URL+"/apis/v1/audit", &curl)
	ask(&command, 1, "audit")
	strip := fmt.Sprintf("▲ %d not true", len(drift(curl)))
	page.contains("#node-strip", strip)
	if a, b := drift(curl), drift(command); !slices.Equal(a, b) {
		t.Errorf("curl says %v, the command %v", a, b)
	}
	if got, want := eval[string](page, `[...document.querySelectorAll('.drift:not([hidden])')].map((b) => b.closest('tr').dataset.key + ' ' + b.textContent).join()`), "shop/web-0 ≠ 1"; got != want {
		t.Errorf("the table says %q, want %q", got, want)
	}
	onPage := map[string][]string{}
	for _, hash := range []string{"#/node", "#/pods/shop/web-0", "#/pods/shop/web-1"} {
		page.goTo(hash)
		view := map[bool]string{true: "#node-sections", false: "#pod-sections"}[hash == "#/node"]
		page.until(fmt.Sprintf(`document.querySelector('%s [aria-label=History]')`, view))
		onPage["differences"] = append(onPage["differences"], eval[[]string](page, fmt.Sprintf(`[...document.querySelectorAll('%s > [aria-label=Differences] .difference[data-tone=bad]')].map((d) => d.dataset.kind)`, view))...)
	}
	slices.Sort(onPage["differences"])
	if want := drift(curl); !slices.Equal(onPage["differences"], want) {
		t.Errorf("the page shows %v, curl says %v", onPage["differences"], want)
	}

	page.goTo("#/node")
	var verdict guard.Report
	ask(&verdict, 0, "guard")
	page.contains("#node-sections [aria-label=Kubelet]", "▲ "+string(verdict.Health))
	var alerts, alertsByCurl queryapi.AlertList
	ask(&alerts, 0, "alerts")
	fetchInto(t, serving.URL+"/apis/v1/alerts", &alertsByCurl)
	shown := eval[[]string](page, `[...document.querySelectorAll('#node-sections [aria-label=Alerts] summary strong')].map((r) => r.textContent)`)
	if a, b := rules(alerts), rules(alertsByCurl); !slices.Equal(a, b) || !slices.Equal(a, shown) {
		t.Errorf("the command says %v, curl %v, the page %v", a, b, shown)
	}

	var ofPod struct {
		Pictures    []audit.Picture
		Differences []audit.Difference
	}
	ask(&ofPod, 1, "audit", "shop/web-0")
	var detail view.PodDetail
	fetchInto(t, serving.URL+"/apis/v1/pods/shop/web-0", &detail)
	if a, b := encode(ofPod.Pictures), encode(detail.Pictures); a != b {
		t.Errorf("the command has the pictures\n%s, curl\n%s", a, b)
	}
	page.goTo("#/pods/shop/web-0")
	for _, p := range ofPod.Pictures {
		for _, c := range p.Containers {
			page.contains("#pod-sections [aria-label=Sides]", strings.TrimSpace(c.State+" "+c.Reason))
		}
	}
}

// drift are the kinds of the differences that are an alarm, in order.
func drift(r audit.Report) (kinds []string) {
	for _, d := range r.Differences {
		if d.Drift {
			kinds = append(kinds, string(d.Kind))
		}
	}
	slices.Sort(kinds)
	return kinds
}

func rules(list queryapi.AlertList) (names []string) {
	for _, a := range list.Items {
		names = append(names, a.Rule)
	}
	return names
}

func fetchInto(t *testing.T, url string, into any) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, response.Status, err)
	}
}
