package fleetpage

import (
	"cmp"
	"context"
	_ "embed" // the list
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/localhost"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/text"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/internal/web"
	"github.com/statusd/statusd/node/fleet"
	"github.com/statusd/statusd/podstatus"
)

//go:embed list.html
var listHTML string

// policy lets the list load the style sheets beside it, and nothing else.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// mostRows is how many nodes the list shows at once.
const mostRows = 500

// Page is the page of a fleet. Make it with [New].
type Page struct {
	fleet            *fleet.Fleet
	version, runtime string
	files            http.Handler

	mu      sync.Mutex // guards what follows
	ctx     context.Context
	servers map[*fleet.Node]server
	serving sync.WaitGroup
}

// server serves the pages of one node.
type server struct {
	handler http.Handler
	end     context.CancelFunc
}

// New makes the page of a fleet whose nodes have the version and the runtime. New starts nothing.
func New(f *fleet.Fleet, version, runtime string) *Page {
	return &Page{fleet: f, version: version, runtime: runtime, files: web.Handler(), servers: make(map[*fleet.Node]server)}
}

// Run serves the pages of nodes until ctx ends. Run may be called once.
func (p *Page) Run(ctx context.Context) {
	p.mu.Lock()
	p.ctx = ctx
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock()
	p.ctx = nil
	p.mu.Unlock()
	p.serving.Wait()
}

// Handler serves the page to browsers of this machine.
func (p *Page) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", p.list)
	mux.HandleFunc("/nodes/{name}/", p.node)
	mux.Handle("/", p.files)
	return localhost.Only(mux, func(w http.ResponseWriter, why string) { http.Error(w, why, http.StatusForbidden) })
}

// node serves the paths below a node.
func (p *Page) node(w http.ResponseWriter, r *http.Request) {
	p.forget()
	name := r.PathValue("name")
	server := p.serverOf(name)
	if server == nil {
		http.Error(w, "the fleet has no node "+localhost.Short(name), http.StatusNotFound)
		return
	}
	http.StripPrefix("/nodes/"+name, server).ServeHTTP(w, r)
}

// serverOf returns the handler of a node, whose server runs from its first request until the node leaves the fleet; nil: there is no such node, or no Run.
func (p *Page) serverOf(name string) http.Handler {
	node := p.fleet.Node(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	if node == nil || p.ctx == nil {
		return nil
	}
	if s, ok := p.servers[node]; ok {
		return s.handler
	}
	sources := view.Sources{Source: &source{node: node, manager: p.fleet.Manager(), version: p.version, runtime: p.runtime}}
	api, err := queryapi.New(queryapi.Options{Sources: sources, Page: p.files})
	if err != nil {
		return nil // it has a source, which is all that it needs
	}
	ctx, end := context.WithCancel(p.ctx)
	p.serving.Go(func() { _ = api.Run(ctx) }) // its error is that of ctx
	p.servers[node] = server{handler: api.Handler(), end: end}
	return p.servers[node].handler
}

// forget ends the servers of nodes that are no longer in the fleet.
func (p *Page) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for node, s := range p.servers {
		if p.fleet.Node(node.Name()) != node {
			s.end()
			delete(p.servers, node)
		}
	}
}

// row is a node in the list.
type row struct {
	Name, Ready, Message     string
	Pods, PodsReady, Waiting int
	Lease                    string
	trouble                  bool
}

// list serves the nodes whose names contain the parameter q.
func (p *Page) list(w http.ResponseWriter, r *http.Request) {
	p.forget()
	search := r.URL.Query().Get("q")
	rows := p.rows(search)
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", policy)
	header.Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(listOf(rows, search))) // fails only if the reader has gone away
}

// listOf is the list as HTML. html/template would do, but a program that links it keeps every exported method.
func listOf(rows []row, search string) string {
	count := fmt.Sprintf("%d nodes", len(rows))
	if hidden := len(rows) - mostRows; hidden > 0 {
		count += fmt.Sprintf(", %d of them are not shown", hidden)
		rows = rows[:mostRows]
	}
	var body strings.Builder
	for _, r := range rows {
		ready := r.Ready
		if r.Message != "" {
			ready += ": " + r.Message
		}
		fmt.Fprintf(&body, "\n        <tr><th scope=\"row\"><a href=\"nodes/%s/\">%s</a></th><td>%s</td><td>%d</td><td>%d</td><td>%d</td><td>%s</td></tr>",
			html.EscapeString(url.PathEscape(r.Name)), html.EscapeString(r.Name), html.EscapeString(ready), r.Pods, r.PodsReady, r.Waiting, html.EscapeString(r.Lease))
	}
	return strings.NewReplacer("{{.Search}}", html.EscapeString(search), "{{.Count}}", count, "{{.Rows}}", body.String()).Replace(listHTML)
}

// rows are the nodes whose names contain a text, those in trouble first.
func (p *Page) rows(search string) []row {
	waiting := map[types.UID]bool{}
	for _, pending := range p.fleet.Manager().Pending() {
		waiting[pending.UID] = true
	}
	var rows []row
	pods := p.fleet.Pods()
	for _, n := range p.fleet.Nodes() { // by name
		if !strings.Contains(n.Name(), search) {
			continue
		}
		ready := readyOf(n)
		one := row{Name: n.Name(), Ready: string(ready.Status), Lease: "never"}
		if ready.Status != v1.ConditionTrue {
			one.Message, one.trouble = ready.Message, true
		}
		if renewed := n.Keeper().LeaseRenewed(); !renewed.IsZero() {
			one.Lease = text.Span(time.Since(renewed)) + " ago"
		}
		for _, pod := range pods[n.Name()] {
			one.Pods++
			if waiting[pod.UID] {
				one.Waiting++
			}
			if c := podstatus.FindCondition(pod.Status.Conditions, v1.PodReady); c != nil && c.Status == v1.ConditionTrue {
				one.PodsReady++
			}
		}
		rows = append(rows, one)
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(-cmp.Compare(number(a.trouble), number(b.trouble)), -cmp.Compare(a.Waiting, b.Waiting))
	})
	return rows
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
