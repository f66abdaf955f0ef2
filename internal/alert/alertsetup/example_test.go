package alertsetup_test

import (
	"fmt"

	"github.com/statusd/statusd/internal/alert/alertsetup"
	"github.com/statusd/statusd/internal/alert/endpoint"
)

func ExampleOutputs_Validate() {
	outputs := alertsetup.Outputs{Alertmanagers: []endpoint.Options{{URL: "alerts:9093"}}}
	outputs.Validate(true, func(field, format string, args ...any) { fmt.Println(field+":", fmt.Sprintf(format, args...)) })
	// Output:
	// outputs.alertmanagers[0]: url: "alerts:9093": want http://HOST or https://HOST
}
