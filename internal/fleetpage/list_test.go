package fleetpage

import (
	"fmt"
	"strings"
	"testing"
)

func TestList_TextsAreNoHTML(t *testing.T) {
	const hostile = `"><script>'&amp;`
	text := listOf([]row{{Name: hostile, Ready: hostile, Message: hostile, Lease: hostile}}, hostile)
	if strings.Contains(text, "<script>") || strings.Contains(text, `"">`) || strings.Contains(text, `'&amp;<`) {
		t.Errorf("got\n%s", text)
	}
	if want := `<a href="nodes/%22%3E%3Cscript%3E%27&amp;amp%3B/">&#34;&gt;&lt;script&gt;&#39;&amp;amp;</a>`; !strings.Contains(text, want) {
		t.Errorf("got\n%s\nwant %s", text, want)
	}
	if strings.Contains(text, "{{") {
		t.Errorf("a placeholder is left in\n%s", text)
	}
}

func TestList_ManyNodes_SaysHowManyAreHidden(t *testing.T) {
	rows := make([]row, mostRows+7)
	for i := range rows {
		rows[i].Name = fmt.Sprintf("sim-%04d", i)
	}
	text := listOf(rows, "")
	if strings.Count(text, "<tr><th scope=\"row\">") != mostRows || !strings.Contains(text, "<p>507 nodes, 7 of them are not shown.</p>") {
		t.Errorf("%d rows in\n%s", strings.Count(text, "<tr>"), text[:1000])
	}
	if text := listOf(rows[:2], ""); !strings.Contains(text, "<p>2 nodes.</p>") {
		t.Errorf("got\n%s", text)
	}
}
