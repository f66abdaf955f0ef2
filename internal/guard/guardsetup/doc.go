// Package guardsetup makes a [guard.Guard] with the parts that this module has: services of systemd or of a
// command, collectors, evidence on disk, and the outputs that the process gives it.
//
//	config := guardsetup.Default()
//	config.Enabled, config.Restart = true, true
//	g, err := guardsetup.New(config, guardsetup.Options{Node: "node-1", Client: client, StateDir: "/var/lib/statusd", ...})
//	go g.Run(ctx)
//	report := g.Report()
package guardsetup
