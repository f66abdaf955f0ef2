package report

import (
	"fmt"
	"strings"
)

// Markdown is the page docs/evidence/benchmarks.md.
func Markdown(run *Run) string {
	var page strings.Builder
	page.WriteString(`# Benchmarks

<!-- Written by make bench. Do not edit: the next run overwrites it. -->

statusd's status manager and the kubelet's, in one run on one API server. Each scenario is
measured in turn for both sides, and where there is one for the ceiling: plain parallel
patches without a manager, with 4, 8, 16, 48 or 200 in flight, whichever is best. The numbers are
medians of the rounds, with the first and the third quartile. Absolute values differ from
machine to machine; the ratio in one run is what counts.

`)
	writeMachine(&page, run.Machine)
	page.WriteString("\n## Results\n\n")
	writeTable(&page, run)
	writeInFlight(&page, run)
	for _, c := range charts(run) {
		fmt.Fprintf(&page, "\n## %s\n\n%s\n\n![%s](benchmarks/%s)\n", c.title, c.note, c.title, c.file)
	}
	page.WriteString(conditions)
	return page.String()
}

func writeMachine(page *strings.Builder, m Machine) {
	page.WriteString("| | |\n|---|---|\n")
	for _, row := range [][2]string{
		{"processor", fmt.Sprintf("%s, %d cores", m.CPU, m.Cores)},
		{"memory", fmt.Sprintf("%d GiB", m.MemoryGiB)},
		{"system", m.OS},
		{"versions", fmt.Sprintf("statusd %s, Kubernetes %s, %s", m.Commit, m.Kubernetes, m.Go)},
		{"rounds", fmt.Sprint(m.Rounds)},
		{"date", m.Date},
	} {
		fmt.Fprintf(page, "| %s | %s |\n", row[0], row[1])
	}
}

func writeTable(page *strings.Builder, run *Run) {
	page.WriteString("| name | what | unit | statusd | upstream | ratio | ceiling | of it | bar |\n")
	page.WriteString("|---|---|---|--:|--:|--:|--:|--:|---|\n")
	for _, result := range run.Results {
		cells := run.cells(result)
		cells = append([]string{"`" + cells[0] + "`", describe(result.Name)}, cells[1:]...)
		fmt.Fprintf(page, "| %s |\n", strings.Join(cells, " | "))
	}
	page.WriteString(`
The ratio says how many times better statusd is: faster, smaller or fewer. Below 1 × it is
worse. A bar is what the result has to reach, with whether it does.
`)
}

// writeInFlight shows what the number of requests in flight does, measured and simulated.
func writeInFlight(page *strings.Builder, run *Run) {
	var kinds []string
	for _, n := range Fixed {
		kinds = append(kinds, fmt.Sprint("fixed ", n))
	}
	page.WriteString("\n## Requests in flight\n\nstatusd finds how many pay; with `PreferThroughput` it has as many as it may; beside it plain patches with a fixed number.\n\n")
	page.WriteString("| name | unit | statusd | throughput | " + strings.Join(kinds, " | ") + " |\n|---|---|" + strings.Repeat("--:|", 2+len(kinds)) + "\n")
	for _, result := range run.Results {
		if _, ok := result.Plain[kinds[0]]; !ok {
			continue
		}
		cells := []string{"`" + result.Name + "`", result.Unit, result.spread("statusd", result.Statusd)}
		if result.Throughput != nil {
			cells = append(cells, result.spread("throughput", *result.Throughput))
		} else {
			cells = append(cells, "")
		}
		for _, kind := range kinds {
			cells = append(cells, result.spread(kind, result.Plain[kind]))
		}
		fmt.Fprintf(page, "| %s |\n", strings.Join(cells, " | "))
	}
	if run.Limits != "" {
		page.WriteString("\nWhat the limit settles at with ever more to do, by round trip and cores of a simulated server\n" +
			"that takes 5 ms of a core for each request (`status/testdata/limit/found.txt`):\n\n" + run.Limits)
	}
}

const conditions = `
## What is equal for both sides

- The server is a real kube-apiserver with etcd on the same machine, so that both sides
  share the processor with it. The clients are those of the node's own user.
- The pods are bound to the node and known to both. A watch of the node's pods feeds both
  managers, as it does in a node agent, and runs with the ceiling too.
- Clients speak protobuf over one HTTP/2 connection. "No client limit" means none for
  either; with QPS 50 and burst 100 the kubelet's manager has client-go's limiter, as in the
  kubelet, and statusd its own.
- A change counts from the report until a watch of another client sees it. A throughput is
  the number of pods divided by the time from the first report until the last is seen.
- The ceiling sends the patches that statusd would send, built beforehand, with a fixed number
  in flight. A lone client has a connection of its own and sends the patch of a withdrawal
  at the moment at which it is reported to the managers, beside 48 plain patches in flight.
- Calls are measured with package testing on managers that do not run. The growth scenarios
  have an API in the same process that answers at once.
- The kubelet's GetPodStatus hands out the cached status itself, which callers must not
  change; statusd's hands out a copy.

## How to repeat it

` + "```" + `
make bench                                              # all of it
make bench BENCHFLAGS="-rounds 3 -for 9m"               # a part of it; again for the next part
cd test/upstream && go run ./bench -only burst,patch -rounds 9  # some of it
` + "```" + `

The first two commands write ` + "`build/bench.json`" + ` and this page; the last leaves both alone and
writes to ` + "`build/bench-partial/`" + `. Leave the machine alone meanwhile.
`
