package explain

import (
	"strings"
	"time"
)

// Text returns the explanation on several lines: one sentence, or a paragraph for each of several causes, and the ends of the
// logs of failed runs.
func (e Explanation) Text(loc *time.Location) string {
	var b strings.Builder
	if len(e.Causes) < 2 {
		b.WriteString(e.Sentence(loc))
	} else {
		head := e
		head.Causes, head.Notes, head.Delivery = nil, nil, nil
		b.WriteString(head.Sentence(loc))
		for _, c := range e.Causes {
			b.WriteString("\n\n- " + capitalize(causes([]Cause{c})) + ".")
			for _, root := range roots([]Cause{c}) {
				for _, part := range []Next{{Wait: root.Next.Wait, At: root.Next.At}, {Do: root.Next.Do, Command: root.Next.Command}} {
					if said := e.outlook(&part, loc); said != "" {
						b.WriteString("\n " + said)
					}
				}
			}
		}
		rest := e
		rest.Causes, rest.NotTrue = nil, nil
		if said := strings.TrimPrefix(rest.Sentence(loc), head.headline(loc)+"."); strings.TrimSpace(said) != "" {
			b.WriteString("\n\n" + strings.TrimSpace(said))
		}
	}
	for _, l := range e.Logs {
		b.WriteString("\n\nThe end of the log of container " + quote(l.Container))
		if l.Previous {
			b.WriteString(", of the run before")
		}
		b.WriteString(":\n")
		for _, line := range l.Lines {
			b.WriteString("  | " + line + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
