package probe

import (
	"context"
	"errors"
	"regexp"
	"strings"

	v1 "k8s.io/api/core/v1"
)

func (c *checker) checkExec(ctx context.Context, q question, action *v1.ExecAction) answer {
	command := expand(action.Command, q.container.Env)
	done, err := c.exec(ctx, q.containerID, command)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return failed("command timed out: %q timed out after %s", strings.Join(command, " "), q.timeout)
	case err != nil:
		return undone(err)
	case done.ExitCode != 0:
		return failed("%s", done.Output)
	}
	return succeeded(string(done.Output))
}

var reference = regexp.MustCompile(`\$\$|\$\([^)]*\)`)

// expand replaces $(NAME) in a command by the value that the container's spec has for it,
// and $$ by $. A name that the spec does not have stays as it is; a variable whose value
// comes from elsewhere counts as empty, as the kubelet has it.
func expand(command []string, env []v1.EnvVar) []string {
	values := make(map[string]string, len(env))
	for _, e := range env {
		values[e.Name] = e.Value
	}
	expanded := make([]string, len(command))
	for i, word := range command {
		expanded[i] = reference.ReplaceAllStringFunc(word, func(ref string) string {
			if ref == "$$" {
				return "$"
			}
			if value, ok := values[ref[2:len(ref)-1]]; ok {
				return value
			}
			return ref
		})
	}
	return expanded
}
