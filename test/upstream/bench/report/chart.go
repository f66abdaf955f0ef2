package report

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// chart is a picture of some results.
type chart struct {
	file, title, note string
	svg               string
}

// charts draws the charts with at least one measured result.
func charts(run *Run) []chart {
	var drawn []chart
	for _, c := range []struct {
		chart
		names []string
		draw  func([]Result) string
	}{
		{chart{file: "throughput.svg", title: "Throughput", note: "Updates a second that a watch sees. Longer is better."},
			[]string{"burst", "burst_2000", "burst_qps50", "rtt50", "rtt200"}, barChart},
		{chart{file: "latency.svg", title: "Latency", note: "Milliseconds from a change until a watch sees it. Further left is better; the scale is logarithmic."},
			[]string{"urgent_in_burst", "urgent_in_burst_qps50", "withdrawals_in_burst", "withdrawals_in_burst_p99", "flapping", "churn"}, dotChart},
		{chart{file: "growth.svg", title: "Growth", note: "Microseconds for one change, by how many pods are cached. Further left is better; the scale is logarithmic."},
			[]string{"growth_100", "growth_1000", "growth_10000", "growth_100000"}, dotChart},
		{chart{file: "calls.svg", title: "Calls", note: "Nanoseconds for one call. Further left is better; the scale is logarithmic."},
			[]string{"set_unchanged", "set_changed", "readiness_flip", "get", "patch"}, dotChart},
		{chart{file: "allocation.svg", title: "Stored allocations", note: "Microseconds until an allocation is on disk, by how many pods are stored. Further left is better; the scale is logarithmic."},
			[]string{"allocation_10", "allocation_100", "allocation_1000"}, dotChart},
	} {
		var results []Result
		for _, name := range c.names {
			if r, ok := run.find(name); ok {
				results = append(results, r)
			}
		}
		if len(results) > 0 {
			c.svg = c.draw(results)
			drawn = append(drawn, c.chart)
		}
	}
	return drawn
}

// Measures of a drawing, in pixels.
const (
	width      = 760
	labelWidth = 190
	plotWidth  = 460 // right of it is room for the last value
	top        = 34
)

// style has colors that can be told apart on light and dark pages, and by people who see
// few colors: the sides differ in brightness too.
const style = `<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.small { font-size: 11px; fill: #57606a }
.grid { stroke: #8c959f; stroke-opacity: .35 }
.statusd { fill: #0969da } .upstream { fill: #d4731c } .ceiling { fill: #9aa4af }
.gap { stroke: #8c959f; stroke-width: 2; stroke-opacity: .6 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .small { fill: #9198a1 }
.statusd { fill: #58a6ff } .upstream { fill: #f0a35e } .ceiling { fill: #6e7681 }
}
</style>
`

// drawing collects the elements of an SVG file from top to bottom.
type drawing struct {
	strings.Builder
	y float64
}

func newDrawing(sides ...string) *drawing {
	d := &drawing{y: top}
	x := float64(labelWidth)
	for _, side := range sides {
		fmt.Fprintf(d, `<rect class="%s" x="%.0f" y="6" width="11" height="11" rx="2"/>`, side, x)
		d.text(x+17, 16, "", side)
		x += 95
	}
	return d
}

func (d *drawing) text(x, y float64, attributes, content string) {
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f" %s>%s</text>`+"\n", x, y, attributes, html.EscapeString(content))
}

func (d *drawing) finish(title string) string {
	height := d.y + 6
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" height="%.0f" role="img" aria-label="%s">`+"\n",
		width, height, width, height, html.EscapeString(title)) + style + d.String() + "</svg>\n"
}

// barChart draws results from zero, for what can be compared by length.
func barChart(results []Result) string {
	const barHeight, gap = 13, 16
	largest := 0.0
	hasCeiling := false
	for _, r := range results {
		largest = max(largest, r.Statusd, r.Upstream)
		if r.Ceiling != nil {
			largest, hasCeiling = max(largest, *r.Ceiling), true
		}
	}
	sides := []string{"statusd", "upstream"}
	if hasCeiling {
		sides = append(sides, "ceiling")
	}
	d := newDrawing(sides...)
	for _, r := range results {
		values := []float64{r.Statusd, r.Upstream}
		if r.Ceiling != nil {
			values = append(values, *r.Ceiling)
		}
		d.text(0, d.y+float64(len(values)*barHeight)/2+4, "", r.Name)
		for i, value := range values {
			length := max(1, value/largest*plotWidth)
			fmt.Fprintf(d, `<rect class="%s" x="%d" y="%.1f" width="%.1f" height="%d" rx="2"/>`, sides[i], labelWidth, d.y, length, barHeight-2)
			d.text(labelWidth+length+6, d.y+barHeight-3, `class="small"`, Quantity(value, r.Unit))
			d.y += barHeight
		}
		d.y += gap
	}
	return d.finish("statusd, upstream and ceiling, in " + results[0].Unit)
}

// dotChart draws results on a logarithmic scale, for what lies orders of magnitude apart.
func dotChart(results []Result) string {
	const rowHeight = 44
	scale := newLogScale(results)
	d := newDrawing("statusd", "upstream")
	bottom := d.y + float64(len(results)*rowHeight)
	for power := scale.from; power <= scale.to; power++ {
		x := scale.x(math.Pow(10, float64(power)))
		fmt.Fprintf(d, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, x, x, d.y, bottom)
		d.text(x, bottom+14, `class="small" text-anchor="middle"`, Quantity(math.Pow(10, float64(power)), results[0].Unit))
	}
	for _, r := range results {
		middle := d.y + rowHeight/2
		ours, theirs := scale.x(r.Statusd), scale.x(r.Upstream)
		d.text(0, middle+4, "", r.Name)
		fmt.Fprintf(d, `<line class="gap" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, ours, theirs, middle, middle)
		for _, dot := range []struct {
			side  string
			x     float64
			value float64
		}{{"upstream", theirs, r.Upstream}, {"statusd", ours, r.Statusd}} {
			fmt.Fprintf(d, `<circle class="%s" cx="%.1f" cy="%.1f" r="6"/>`, dot.side, dot.x, middle)
			above := -11.0 // the two values cannot cover each other
			if dot.side == "upstream" {
				above = 19
			}
			d.text(dot.x, middle+above, `class="small" text-anchor="middle"`, Quantity(dot.value, r.Unit))
		}
		d.y += rowHeight
	}
	d.y = bottom + 16
	return d.finish("statusd and upstream, in " + results[0].Unit + ", logarithmic")
}

// logScale spans whole powers of ten.
type logScale struct{ from, to int }

func newLogScale(results []Result) logScale {
	least, most := math.Inf(1), 0.0
	for _, r := range results {
		least, most = min(least, r.Statusd, r.Upstream), max(most, r.Statusd, r.Upstream)
	}
	s := logScale{from: int(math.Floor(math.Log10(least))), to: int(math.Ceil(math.Log10(most)))}
	if s.from == s.to {
		s.to++
	}
	return s
}

func (s logScale) x(value float64) float64 {
	return labelWidth + plotWidth*(math.Log10(value)-float64(s.from))/float64(s.to-s.from)
}
