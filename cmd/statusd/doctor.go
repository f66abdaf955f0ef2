package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/statusd/statusd/internal/doctor"
	"github.com/statusd/statusd/internal/observer"
	"github.com/statusd/statusd/internal/run"
)

func newDoctor() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine, the config, rights and versions, and name a remedy for each problem",
		Long: "Examine what statusd run needs, or with --observe statusd observe: kernel, control groups, state directory, addresses,\n" +
			"container runtime, API server, clock, rights and the name of the node. Nothing is changed. The exit code is 1 if a check fails.",
		Example: "  statusd doctor --config /etc/statusd/statusd.yaml\n  statusd doctor --observe --config /etc/statusd/observe.yaml -o json",
		Args:    usage(cobra.NoArgs),
	}
	observe := cmd.Flags().Bool("observe", false, "Examine for statusd observe instead of statusd run.")
	file := cmd.Flags().String("config", "", "Config file. Empty: the defaults.")
	kubeconfig := cmd.Flags().String("kubeconfig", "", "Overrides kubeconfig of the config.")
	node := cmd.Flags().String("node-name", "", "Overrides nodeName of the config.")
	state := cmd.Flags().String("state-dir", "", "Overrides stateDir of the config.")
	var out output
	out.addFlag(cmd, "table", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		ctx, stop := interruptible(cmd)
		defer stop()
		subject := examined(*observe, *file, *kubeconfig, *node, *state)
		if subject.Client != nil {
			subject.Client.UserAgent = userAgent("doctor")
		}
		return printFindings(cmd.OutOrStdout(), out, doctor.Examine(ctx, subject))
	}
	return cmd
}

// examined makes the subject of a config. A problem of the config is a finding, not an error.
func examined(observe bool, file, kubeconfig, node, state string) doctor.Subject {
	over := func(name, path, dir *string) {
		for to, value := range map[*string]string{name: node, path: kubeconfig, dir: state} {
			if value != "" {
				*to = value
			}
		}
	}
	if observe {
		config, err := orDefault(file, observerConfig)
		over(&config.NodeName, &config.Kubeconfig, &config.StateDir)
		return withProblem(config.Examined(), err)
	}
	config, err := orDefault(file, agentConfig)
	over(&config.NodeName, &config.Kubeconfig, &config.StateDir)
	return withProblem(config.Examined(), err)
}

// orDefault loads a config, or returns the default with the error.
func orDefault[C run.Config | observer.Config](file string, kind configKind[C]) (C, error) {
	if file == "" {
		return kind.byDefault(), nil
	}
	config, err := kind.load(file)
	if err != nil {
		return kind.byDefault(), err
	}
	return config, nil
}

func withProblem(s doctor.Subject, err error) doctor.Subject {
	if err != nil {
		s.ConfigProblem = fmt.Errorf("%s; the other checks use the default config", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return s
}

// colorOf are the colors of results.
var colorOf = map[doctor.Result]string{doctor.OK: green, doctor.Warning: yellow, doctor.Failed: red, doctor.Skipped: faint}

func printFindings(to io.Writer, out output, findings []doctor.Finding) error {
	done, err := out.encoded(to, findings)
	if !done && err == nil {
		t := table{colors: inColor(to)}
		t.header("CHECK", "RESULT", "FOUND")
		for _, f := range findings {
			t.add(cell{f.Check, ""}, cell{string(f.Result), colorOf[f.Result]}, cell{f.Found, ""})
			if f.Do != "" {
				t.add(cell{" ", ""}, cell{" ", ""}, cell{"→ " + f.Do, bold})
			}
		}
		err = t.print(to)
	}
	if err == nil && doctor.Worst(findings) == doctor.Failed {
		return exitError(exitFailure)
	}
	return err
}
