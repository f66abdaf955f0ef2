package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteText prints the results as a table.
func WriteText(w io.Writer, run *Run) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(header, "\t"))
	for _, result := range run.Results {
		fmt.Fprintln(table, strings.Join(run.cells(result), "\t"))
	}
	return table.Flush()
}

var header = []string{"name", "unit", "statusd", "upstream", "ratio", "ceiling", "of it", "bar"}

// cells are the columns of a result, in the order of header.
func (r *Run) cells(result Result) []string {
	top, reached := "", ""
	if share, ok := result.share(); ok {
		top, reached = number(*result.Ceiling), percent(share)
	}
	return []string{
		result.Name, result.Unit, result.spread("statusd", result.Statusd), result.spread("upstream", result.Upstream), times(result.Advantage()),
		top, reached, strings.Join(r.verdicts(result), "; "),
	}
}
