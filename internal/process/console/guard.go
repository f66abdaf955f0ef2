package console

import (
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/guard/notify"
)

// GuardOutputs returns the outputs for a guard's notices.
func (c *Console) GuardOutputs() (outputs []guard.Output) {
	if c.p.Outputs.Events {
		outputs = append(outputs, notify.Events{Record: c.p.Events.NodeEvent})
	}
	if c.p.Outputs.Conditions && c.p.Conditions != nil {
		outputs = append(outputs, notify.Condition{Keeper: c.p.Conditions.Owner(notify.Terms)})
	}
	return outputs
}
