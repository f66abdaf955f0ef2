package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/statusd/statusd/agent"
)

func config(args []string, out io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == "default":
		return agent.WriteDefault(out)
	case len(args) >= 1 && len(args) <= 2 && args[0] == "check":
		return checkConfig(args[1:], out)
	}
	return fmt.Errorf("want config default, or config check [FILE]: %w", errUsage)
}

// checkConfig says everything that is wrong, not only the first thing. Without a file the
// defaults are checked, which means the manifests where they are by default.
func checkConfig(file []string, out io.Writer) error {
	config := agent.Default()
	if len(file) == 1 {
		var err error
		if config, err = agent.LoadFile(file[0]); err != nil {
			return err
		}
	}
	if err := config.Validate(); err != nil {
		return err
	}
	if config.Kubeconfig != "" {
		if _, err := os.Stat(config.Kubeconfig); err != nil {
			return fmt.Errorf("config: kubeconfig: %w", err)
		}
	}
	pods, problems := agent.CheckManifests(context.Background(), config)
	if len(problems) > 0 {
		return fmt.Errorf("manifests: %d static pods can be read, and there are problems:\n%w", pods, errors.Join(problems...))
	}
	_, err := fmt.Fprintf(out, "ok: the config is valid, and %s defines %d static pods\n", config.Manifests, pods)
	return err
}
