package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/audit"
)

// printPod prints what each side says of a pod, and where they differ.
func (c *auditCommand) printPod(out io.Writer, name string, sides map[audit.Side]audit.Answer, pictures []audit.Picture, differences []audit.Difference) error {
	now := time.Now()
	colors := inColor(out)
	if err := printSilent(out, sides, colors, now); err != nil {
		return err
	}
	if len(pictures) > 0 {
		if err := pictureTable(pictures, c.format == "wide", colors, now).print(out); err != nil {
			return err
		}
	}
	return c.printDifferences(out, name, differences, colors, now)
}

func (c *auditCommand) printDifferences(out io.Writer, name string, differences []audit.Difference, colors bool, now time.Time) error {
	shown := slices.DeleteFunc(slices.Clone(differences), func(d audit.Difference) bool { return !d.Drift && !c.settling })
	var b strings.Builder
	for i := range shown {
		d := &shown[i]
		title := string(d.Kind)
		if d.Container != "" {
			title += " " + d.Container
		}
		state := ""
		if !d.Drift {
			state = ", settling"
		}
		fmt.Fprintf(&b, "\n%s (%s, for %s%s): %s\n", paint(cell{plain(title), driftColor(d)}, colors), plain(string(d.Certainty)), ago(d.Since, now), state, plain(d.Message))
		for _, e := range d.Evidence {
			fmt.Fprintf(&b, "  %s, %s ago: %s\n", plain(string(e.Side)), ago(e.At, now), plain(e.Text))
		}
		if d.Writer != "" {
			fmt.Fprintf(&b, "  written by: %s\n", plain(d.Writer))
		}
		for _, hold := range d.Holds {
			fmt.Fprintf(&b, "  held by: %s\n", plain(hold))
		}
		if d.Do != "" {
			fmt.Fprintf(&b, "  what to do: %s\n", plain(d.Do))
		}
	}
	if len(shown) == 0 {
		fmt.Fprintf(&b, "\nNo drift of pod %s is known.\n", plain(name))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// pictureTable has one column per side. A value that contradicts another side is marked with an
// exclamation mark, since a color alone is not visible to everyone.
func pictureTable(pictures []audit.Picture, wide, colors bool, now time.Time) *table {
	t := &table{colors: colors}
	pictures = sortedPictures(pictures)
	header := []string{"WHAT"}
	for _, p := range pictures {
		header = append(header, strings.ToUpper(string(p.Side)))
	}
	t.header(header...)
	row := func(name string, of func(*audit.Picture) cell) {
		cells := []cell{{name, ""}}
		for i := range pictures {
			cells = append(cells, of(&pictures[i]))
		}
		t.add(cells...)
	}
	row("answers", func(p *audit.Picture) cell {
		if !p.Known {
			return cell{"no", yellow}
		}
		return cell{"yes", ""}
	})
	row("as of", func(p *audit.Picture) cell { return cell{agoWord(p.At, now), faint} })
	row("has the pod", func(p *audit.Picture) cell { return cell{yesNo(p.Exists), ""} })
	row("phase", func(p *audit.Picture) cell { return cell{p.Phase, ""} })
	row("ready", func(p *audit.Picture) cell { return cell{p.Ready, ""} })
	if slices.ContainsFunc(pictures, func(p audit.Picture) bool { return p.Deleting }) {
		row("being deleted", func(p *audit.Picture) cell { return cell{yesNo(p.Deleting), ""} })
	}
	for _, name := range containerNames(pictures) {
		row("container "+name, func(p *audit.Picture) cell { return containerCell(p, name, now) })
		row("  restarts", func(p *audit.Picture) cell {
			c := containerOf(p, name)
			if c == nil {
				return cell{"", ""}
			}
			return cell{fmt.Sprint(c.Restarts), ""}
		})
		if wide {
			row("  id", func(p *audit.Picture) cell {
				if c := containerOf(p, name); c != nil {
					return cell{c.ID, ""}
				}
				return cell{"", ""}
			})
		}
	}
	row("notes", func(p *audit.Picture) cell { return cell{strings.Join(p.Notes, "; "), ""} })
	if wide {
		row("asked", func(p *audit.Picture) cell { return cell{p.From, faint} })
	}
	return t
}

func sortedPictures(pictures []audit.Picture) []audit.Picture {
	sorted := slices.Clone(pictures)
	slices.SortStableFunc(sorted, func(a, b audit.Picture) int {
		return slices.Index(sideOrder, a.Side) - slices.Index(sideOrder, b.Side)
	})
	return sorted
}

func containerNames(pictures []audit.Picture) (names []string) {
	for i := range pictures {
		for _, c := range pictures[i].Containers {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func containerOf(p *audit.Picture, name string) *audit.PictureContainer {
	for i := range p.Containers {
		if p.Containers[i].Name == name {
			return &p.Containers[i]
		}
	}
	return nil
}

func containerCell(p *audit.Picture, name string, now time.Time) cell {
	c := containerOf(p, name)
	if c == nil {
		return cell{"", ""}
	}
	text := c.State
	if c.Reason != "" {
		text += " " + c.Reason
	}
	if c.ExitCode != nil {
		text += fmt.Sprintf(" (exit code %d)", *c.ExitCode)
	}
	if c.Ready != nil {
		text += map[bool]string{true: ", ready", false: ", not ready"}[*c.Ready]
	}
	if !c.Since.IsZero() {
		text += ", for " + ago(c.Since, now)
	}
	if c.Differs {
		return cell{"! " + text, red}
	}
	return cell{text, ""}
}

func agoWord(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return ago(t, now) + " ago"
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
