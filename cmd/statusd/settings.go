package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/statusd/statusd/internal/observer"
	"github.com/statusd/statusd/internal/run"
)

// settings are the flags of a command that has a config of type C.
type settings[C any] struct {
	configKind[C]
	file  string
	flags *pflag.FlagSet
}

// configKind is how a config of type C is made.
type configKind[C any] struct {
	byDefault func() C
	load      func(file string) (C, error)
	addFlags  func(*C, *pflag.FlagSet)
	printed   string // the command that prints one
}

// agentConfig is the configuration of statusd run, observerConfig the configuration of statusd observe.
var (
	agentConfig    = configKind[run.Config]{run.Default, run.LoadFile, (*run.Config).AddFlags, "statusd config default"}
	observerConfig = configKind[observer.Config]{observer.Default, observer.LoadFile, (*observer.Config).AddFlags, "statusd config default --observe"}
)

// addSettings gives a command --config and a flag for each setting that has one.
func addSettings[C any](cmd *cobra.Command, kind configKind[C]) *settings[C] {
	s := &settings[C]{configKind: kind, flags: cmd.Flags()}
	s.flags.SortFlags = false
	s.flags.StringVar(&s.file, "config", "", "Config file; "+kind.printed+" prints one. Flags override it.")
	shown := kind.byDefault() // for the defaults that the help shows
	kind.addFlags(&shown, s.flags)
	return s
}

// config reads the config file that the flags name, and then the flags over it.
func (s *settings[C]) config() (C, error) {
	config := s.byDefault()
	if s.file != "" {
		var err error
		if config, err = s.load(s.file); err != nil {
			return config, err
		}
	}
	over := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.addFlags(&config, over)
	return config, override(over, s.flags)
}

// doing makes a command that runs do with the config and prints the returned text.
func (s *settings[C]) doing(do func(ctx context.Context, config C) (string, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		config, err := s.config()
		if err != nil {
			return err
		}
		ctx, stop := interruptible(cmd)
		defer stop()
		said, err := do(ctx, config)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), said)
		return err
	}
}

// override sets the flags of a config that a user has given.
func override(config, given *pflag.FlagSet) (problem error) {
	given.Visit(func(f *pflag.Flag) {
		to := config.Lookup(f.Name)
		if to == nil || problem != nil {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			problem = to.Value.(pflag.SliceValue).Replace(list.GetSlice())
			return
		}
		problem = config.Set(f.Name, f.Value.String())
	})
	return problem
}

// parseRun is the config of statusd run with these arguments.
func parseRun(args []string) (run.Config, error) {
	cmd := &cobra.Command{Use: "run"}
	s := addSettings(cmd, agentConfig)
	if err := cmd.ParseFlags(args); err != nil {
		return run.Config{}, err
	}
	return s.config()
}
