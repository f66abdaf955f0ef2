// Package console is what both processes of this module, statusd run and statusd observe, show of their node and report about
// it: history, logs and load of the machine, the guard, alerts, the query API with its page, and where they are served.
//
//	c, err := console.New(options, &life)   // binds addresses; its Announce and History can be used at once
//	…                                       // the process makes what knows and does things
//	err = c.Connect(console.Process{…})     // and says what it knows and is able to do
//	err = life.Run(ctx, slices.Concat(c.First(), own, c.Last()))
//
// A process brings [Facts]; what the console adds to them, such as what a log says about a pod, is in what the query API
// serves and what rules see.
package console
