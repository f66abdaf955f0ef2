package console

import "maps"

// Former returns the former settings of both processes with their replacements, and the former settings of one process.
func Former(own map[string]string) map[string]string {
	all := map[string]string{
		"querySocket": "the socket is statusd.sock in stateDir",

		"guard.events":            "set outputs.events",
		"guard.nodeCondition":     "set outputs.conditions",
		"machine.events":          "set outputs.events",
		"machine.nodeConditions":  "set outputs.conditions",
		"machine.kernelLog":       "the log of the kernel is read where /dev/kmsg or the journal can be read",
		"machine.loadInterval":    "the load is read every 10 s",
		"rules.events":            "set outputs.events",
		"rules.conditions":        "set outputs.conditions",
		"rules.alertmanagers":     "set outputs.alertmanagers",
		"rules.webhooks":          "set outputs.webhooks",
		"rules.log":               "each alert is logged",
		"rules.actionsSecretFile": "set secretFile in rules.actions.webhook",
	}
	maps.Copy(all, own)
	return all
}
