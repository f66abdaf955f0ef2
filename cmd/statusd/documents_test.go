package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// shown finds commands of statusd where documents show them: in code, or on a line of its own.
var shown = regexp.MustCompile("(?m)(?:`|^    (?:sudo )?)statusd ([^`\n#|]*)")

// Each command and each flag that a document names exists.
func TestDocumentsNameCommandsThatExist(t *testing.T) {
	documents := []string{"../../README.md", "../../deploy/README.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/*/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, pages...)
	}
	root := newRoot()
	root.InitDefaultCompletionCmd()
	found := 0
	for _, path := range documents {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shown.FindAllStringSubmatch(string(text), -1) {
			found++
			if problem := unknown(root, m[1]); problem != "" {
				t.Errorf("%s: statusd %s: there is no %s", strings.TrimPrefix(path, "../../"), m[1], problem)
			}
		}
	}
	if found < 50 {
		t.Errorf("found %d commands in the documents, want more: the expression does not match any more", found)
	}
	for _, wrong := range []string{"nonsense", "audit --nonsense", "get pods -q"} {
		if unknown(root, wrong) == "" {
			t.Errorf("statusd %s exists, by this test", wrong)
		}
	}
}

func TestManualPage_HasEachCommandAndExitCode(t *testing.T) {
	page, err := os.ReadFile("../../deploy/packaging/statusd.8")
	if err != nil {
		t.Fatal(err)
	}
	root := newRoot()
	root.InitDefaultCompletionCmd()
	for _, command := range root.Commands() {
		name := command.Name()
		if !regexp.MustCompile(`(?m)^\.BR? (.*[ ,"])?`+name+`(["  ,].*)?$`).Match(page) && !command.Hidden {
			t.Errorf("the manual page has no command %s", name)
		}
	}
	for _, code := range regexp.MustCompile(`(?m)^  (\d)  `).FindAllStringSubmatch(root.Long, -1) {
		if !strings.Contains(string(page), "\n.B "+code[1]+"\n") {
			t.Errorf("the manual page has no exit code %s", code[1])
		}
	}
}

// unknown is the first word of a command line that is neither a command nor a flag nor an argument.
func unknown(root *cobra.Command, line string) string {
	usage, _, _ := strings.Cut(line, "   ") // what follows explains it
	cmd, first := root, true
	for _, word := range strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(usage)) {
		if name, is := strings.CutPrefix(word, "-"); is {
			if !hasFlag(cmd, strings.TrimLeft(name, "-")) {
				return word
			}
			continue
		}
		if next := subcommand(cmd, word); next != nil {
			cmd = next
		} else if first {
			return word
		}
		first = false
	}
	return ""
}

func subcommand(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return c
		}
	}
	return nil
}

func hasFlag(cmd *cobra.Command, name string) bool {
	name, _, _ = strings.Cut(name, "=")
	cmd.InitDefaultHelpFlag()
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.InheritedFlags()} {
		if flags.Lookup(name) != nil || len(name) == 1 && flags.ShorthandLookup(name) != nil {
			return true
		}
	}
	return false
}
