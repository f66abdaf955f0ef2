// Package standard makes a [guard.Guard] with the parts that this module has: services of systemd or child
// processes, collectors, evidence on disk, a condition of the Node, Events and a webhook.
//
//	config := standard.Default()
//	config.Enabled, config.Restart = true, true
//	g, err := standard.New(config, standard.Options{Node: "node-1", Client: client, StateDir: "/var/lib/statusd", ...})
//	go g.Run(ctx)
//	report := g.Report()
package standard
