package logs_test

import (
	"fmt"

	"github.com/statusd/statusd/internal/machine/logs"
)

func ExampleParseRules() {
	rules, err := logs.ParseRules("mine.yaml", []byte(`
apiVersion: statusd/v1alpha1
kind: LogRules
rules:
- {origin: kernel, reason: LinkDown, severity: warning, match: 'eth0: Link is Down', condition: NetworkDown, clear: 'eth0: Link is Up'}
`))
	fmt.Println(len(rules), rules[0].Reason, err)
	// Output: 1 LinkDown <nil>
}
