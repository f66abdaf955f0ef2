package alerting_test

import (
	"fmt"

	"github.com/statusd/statusd/rules/alerting"
	"github.com/statusd/statusd/rules/endpoint"
)

func ExampleConfig_Validate() {
	config := alerting.Default()
	config.Alertmanagers = []endpoint.Options{{URL: "alerts:9093"}}
	config.Validate(func(field, format string, args ...any) { fmt.Println(field+":", fmt.Sprintf(format, args...)) })
	// Output:
	// rules.alertmanagers[0]: url: "alerts:9093": want http://HOST or https://HOST
	// rules: has outputs or actions, and no rules: set pack or files
}
