package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/statusd/statusd/agent"
)

// settings are the flags of a command that has a config.
type settings struct {
	file  string
	flags *pflag.FlagSet
}

// addSettings gives a command --config and a flag for each setting that has one.
func addSettings(cmd *cobra.Command) *settings {
	s := &settings{flags: cmd.Flags()}
	s.flags.SortFlags = false
	s.flags.StringVar(&s.file, "config", "", "Config file; statusd config default prints one. Flags override it.")
	shown := agent.Default() // for the defaults that the help shows
	shown.AddFlags(s.flags)
	return s
}

// config reads the config file that the flags name, and then the flags over it.
func (s *settings) config() (agent.Config, error) {
	config := agent.Default()
	if s.file != "" {
		var err error
		if config, err = agent.LoadFile(s.file); err != nil {
			return config, err
		}
	}
	over := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddFlags(over)
	return config, override(over, s.flags)
}

// override sets the flags of a config to those that a user has given.
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
func parseRun(args []string) (agent.Config, error) {
	cmd := &cobra.Command{Use: "run"}
	s := addSettings(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		return agent.Config{}, err
	}
	return s.config()
}
