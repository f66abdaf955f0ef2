package alerting

import "github.com/statusd/statusd/internal/daemon"

// setting is one field of the section rules of a config file.
type setting daemon.Setting

// Settings are the fields of the section rules of a config file.
func Settings(c *Config) []daemon.Setting {
	return daemon.Settings([]setting{
		{"rules.pack", "", &c.Pack,
			"Evaluate the starter pack of rules: statusd rules pack prints it. Without it and without files there\nare no alerts. See docs/alerting.md."},
		{"rules.files", "", &c.Files,
			"Files of rules, and directories of them (*.yaml and *.yml, without *_test.yaml), read again when they\nchange. A rule with the name of one of the pack replaces it."},
		{"rules.externalURL", "", &c.ExternalURL,
			"Where users reach the page of this node. Alerts link to it."},
		{"rules.alertmanagers", "", &c.Alertmanagers,
			"Instances of Alertmanager, each of which gets every alert: url, and if need be timeout, caFile,\ncertFile, keyFile, serverName, username, passwordFile, bearerTokenFile."},
		{"rules.webhooks", "", &c.Webhooks,
			"Other receivers: name, secretFile (to sign with), and the same as for an Alertmanager."},
		{"rules.events", "", &c.Events,
			"Make an Event of each alert, on its pod or the Node."},
		{"rules.conditions", "", &c.Conditions,
			"Give the Node a condition while an alert fires whose rule has the annotation nodeCondition."},
		{"rules.log", "", &c.Log,
			"Log each alert."},
		{"rules.actions", "", &c.Actions,
			"What rules may do; all is off by default. As in {evict: {budget: 2, per: 10m, coolDown: 10m, dryRun: true}};\nthere are evict, restartContainer, taint, cordon, webhook and restartKubelet."},
		{"rules.actionsKubeconfig", "", &c.ActionsKubeconfig,
			"Credentials for actions, in place of those of the node, which may not set taints."},
		{"rules.actionsSecretFile", "", &c.ActionsSecretFile,
			"What the calls of the action webhook are signed with. Empty: they are not."},
	})
}
