package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/internal/alert/rulefile"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/alert/ruletest"
)

func newRules() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rules", Short: "Check, test and explain the rules of alerts", Args: usage(cobra.NoArgs),
		Example: "  statusd rules pack > rules.yaml\n  statusd rules check rules.yaml\n  statusd rules test rules_test.yaml",
		RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("want rules check, test, pack or doc: %w", errUsage)
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use: "check FILE...", Short: "Check rule files, or directories of rule files", Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return checkRules(cmd.OutOrStdout(), args) },
	}, &cobra.Command{
		Use: "test [FILE...]", Short: "Run tests of rules; without a file the tests of the starter pack",
		RunE: func(cmd *cobra.Command, args []string) error { return testRules(cmd.OutOrStdout(), args) },
	}, &cobra.Command{
		Use: "pack", Short: "Print the starter pack", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return printPack(cmd.OutOrStdout()) },
	}, &cobra.Command{
		Use: "doc", Aliases: []string{"explain"}, Short: "Print what expressions can use, and how rules are written", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return engine.WriteDocument(cmd.OutOrStdout()) },
	})
	return cmd
}

func checkRules(out io.Writer, files []string) error {
	set, err := ruleset.Load(files...)
	if err != nil {
		return listMistakes(err)
	}
	for _, w := range set.Warnings() {
		fmt.Fprintln(out, "note: "+harmless(w.Error()))
	}
	_, err = fmt.Fprintf(out, "ok: %d rules\n", len(set.Rules()))
	return err
}

// listMistakes says how many mistakes there are before it lists them.
func listMistakes(err error) error {
	var mistakes rulefile.Mistakes
	if !errors.As(err, &mistakes) {
		return err
	}
	noun := "mistakes"
	if len(mistakes) == 1 {
		noun = "mistake"
	}
	return fmt.Errorf("%d %s\n%w", len(mistakes), noun, err)
}

func testRules(out io.Writer, files []string) error {
	run := ruletest.Run
	if len(files) == 0 {
		all, err := fs.Glob(ruleset.PackFiles(), "*_test.yaml")
		if err != nil {
			return err
		}
		files, run = all, func(file string) ([]ruletest.Result, error) { return ruletest.RunFS(ruleset.PackFiles(), file) }
	}
	tests, failed := 0, 0
	for _, file := range files {
		results, err := run(file)
		if err != nil {
			return listMistakes(err)
		}
		for _, r := range results {
			tests++
			if len(r.Failures) == 0 {
				continue
			}
			failed++
			fmt.Fprintf(out, "FAIL %s\n%s\n", harmless(r.Name), harmless(strings.Join(r.Failures, "\n")))
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tests failed", failed, tests)
	}
	_, err := fmt.Fprintf(out, "ok: %d tests\n", tests)
	return err
}

func printPack(out io.Writer) error {
	files, err := fs.Glob(ruleset.PackFiles(), "*.yaml")
	if err != nil {
		return err
	}
	separator := ""
	for _, file := range files {
		if strings.HasSuffix(strings.TrimSuffix(file, path.Ext(file)), "_test") {
			continue
		}
		data, err := fs.ReadFile(ruleset.PackFiles(), file)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s%s", separator, data); err != nil {
			return err
		}
		separator = "---\n"
	}
	return nil
}
