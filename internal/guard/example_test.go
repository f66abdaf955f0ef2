package guard_test

import (
	"encoding/json"
	"fmt"

	"github.com/statusd/statusd/internal/guard"
)

func ExampleVerdict() {
	verdict := guard.Verdict{Health: guard.Unhealthy, Do: "renew its client certificate: it has expired"}
	text, _ := json.Marshal(verdict.Health)
	fmt.Println(string(text), verdict.Do)
	// Output: "unhealthy" renew its client certificate: it has expired
}
