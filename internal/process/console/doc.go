// Package console is the common user interface of statusd run and statusd observe: history, logs and load of the machine, the
// guard, alerts, and the query API with its page and addresses.
//
//	c, err := console.New(options, &life)   // binds addresses; its Announce and History can be used at once
//	…                                       // the process makes what knows and does things
//	err = c.Connect(console.Process{…})     // and says what it knows and is able to do
//	err = life.Run(ctx, slices.Concat(c.First(), own, c.Last()))
//
// A process provides [Facts]. The console adds its own, such as log problems of a pod, for the query API and for rules.
package console
