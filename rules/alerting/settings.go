package alerting

import "github.com/statusd/statusd/internal/daemon"

// Settings are the fields of the section rules of a config file.
func Settings(c *Config) []daemon.Setting {
	return []daemon.Setting{
		{Path: "rules.pack", Value: &c.Pack,
			Doc: "Evaluate the starter pack of rules: statusd rules pack prints it. Without it and without files there\nare no alerts. See docs/alerting.md."},
		{Path: "rules.files", Value: &c.Files,
			Doc: "Files of rules, and directories of them (*.yaml and *.yml, without *_test.yaml), read again when they\nchange. A rule with the name of one of the pack replaces it."},
		{Path: "rules.externalURL", Value: &c.ExternalURL,
			Doc: "Where users reach the page of this node. Alerts link to it."},
		{Path: "rules.alertmanagers", Value: &c.Alertmanagers,
			Doc: "Instances of Alertmanager, each of which gets every alert: url, and if need be timeout, caFile,\ncertFile, keyFile, serverName, username, passwordFile, bearerTokenFile."},
		{Path: "rules.webhooks", Value: &c.Webhooks,
			Doc: "Other receivers: name, secretFile (to sign with), and the same as for an Alertmanager."},
		{Path: "rules.events", Value: &c.Events,
			Doc: "Make an Event of each alert, on its pod or the Node."},
		{Path: "rules.conditions", Value: &c.Conditions,
			Doc: "Give the Node a condition while an alert fires whose rule has the annotation nodeCondition."},
		{Path: "rules.log", Value: &c.Log,
			Doc: "Log each alert."},
		{Path: "rules.actions", Value: &c.Actions,
			Doc: "What rules may do; all is off by default. As in {evict: {budget: 2, per: 10m, coolDown: 10m, dryRun: true}};\nthere are evict, restartContainer, taint, cordon, webhook and restartKubelet."},
		{Path: "rules.actionsKubeconfig", Value: &c.ActionsKubeconfig,
			Doc: "Credentials for actions, in place of those of the node, which may not set taints."},
		{Path: "rules.actionsSecretFile", Value: &c.ActionsSecretFile,
			Doc: "What the calls of the action webhook are signed with. Empty: they are not."},
	}
}
