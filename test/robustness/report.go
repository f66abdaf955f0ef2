package main

import (
	"html/template"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/statusd/statusd/test/robustness/judge"
	"github.com/statusd/statusd/test/robustness/record"
)

// page is the report: what was broken when, how long the API was wrong, and each violation with its shortest history.
var page = template.Must(template.New("report").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>statusd robustness</title>
<style>
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 75em; color: #222 }
pre { background: #f5f5f5; padding: .7em; overflow-x: auto }
svg { width: 100%; background: #fafafa } svg text { font-size: 11px }
.fault { fill: #d9822b } .agent, .server { fill: #a33 } .calm { fill: #2b7a4b }
</style>
<h1>statusd robustness: {{if .Violations}}{{len .Violations}} violations{{else}}no violations{{end}}</h1>
<pre>{{.Summary}}</pre>
<h2>Timeline</h2>
<svg viewBox="0 0 1200 {{.Height}}" role="img" aria-label="faults over time">
{{range .Rows}}<text x="0" y="{{.Text}}">{{.Name}}</text>{{$y := .Y}}{{range .Bars}}<rect class="fault" x="{{.X}}" y="{{$y}}" width="{{.Width}}" height="9"><title>{{.Title}}</title></rect>{{end}}
{{end}}<text x="0" y="{{.LagText}}">API wrong after the last fault, 0 to 15 s</text>
{{range .Lags}}<circle class="calm" cx="{{.X}}" cy="{{.Y}}" r="2"><title>{{.Title}}</title></circle>{{end}}
</svg>
{{if .Violations}}<h2>Violations</h2>{{end}}
{{range .Violations}}<h3>{{.Text}}</h3><pre>{{range .History}}{{.}}
{{end}}</pre>{{end}}
</html>
`))

type bar struct {
	X, Width, Y float64
	Title       string
}

type row struct {
	Name    string
	Y, Text int
	Bars    []bar
}

type shown struct {
	Text    string
	History []string
}

// The timeline begins right of the names, and has a row for each fault and one for what is late.
const left, width, rowHeight, lagHeight = 260, 930, 13, 60

// writeReport writes the page.
func writeReport(path string, history []record.Record, s *summary, violations []shown) error {
	first, scale := history[0].At, float64(width)/float64(max(1, s.lasted))
	x := func(at int64) float64 { return left + float64(at-first)*scale }
	rows := map[string]*row{}
	began := map[string][]int64{}
	for _, r := range history {
		if r.Kind != record.Fault {
			continue
		}
		if rows[r.Fault] == nil {
			rows[r.Fault] = &row{Name: r.Fault}
		}
		if r.Verb == record.Begin {
			began[r.Fault] = append(began[r.Fault], r.At)
			continue
		}
		from := r.At
		if open := began[r.Fault]; len(open) > 0 {
			from, began[r.Fault] = open[0], open[1:]
		}
		rows[r.Fault].Bars = append(rows[r.Fault].Bars, bar{X: x(from), Width: max(1, float64(r.At-from)*scale), Title: time.Duration(r.At - from).Round(time.Millisecond).String()})
	}
	data := struct {
		Summary         string
		Height, LagText int
		Rows            []*row
		Lags            []bar
		Violations      []shown
	}{Summary: s.String(), Violations: violations}
	y := 0
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		rows[name].Y, rows[name].Text = y, y+9
		data.Rows = append(data.Rows, rows[name])
		y += rowHeight
	}
	data.Height, data.LagText = y+lagHeight+10, y+lagHeight
	for _, l := range s.late {
		share := min(1, l.after.Seconds()/trueWithin.Seconds())
		data.Lags = append(data.Lags, bar{X: x(l.at), Y: float64(y+lagHeight) - share*lagHeight, Title: l.pod + " " + l.after.String()})
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return page.Execute(file, data)
}

// late is a pod that was wrong in the API when the faults had ended.
type late struct {
	at    int64
	pod   string
	after time.Duration
}

// shorten makes violations readable: each with the shortest history that shows it.
func shorten(history []record.Record, v judge.Violation) shown {
	s := shown{Text: time.Unix(0, v.At).UTC().Format("15:04:05.000") + "  " + v.String()}
	if v.UID == "" {
		return s
	}
	for _, r := range judge.Shrink(history, v) {
		s.History = append(s.History, r.String())
	}
	return s
}
