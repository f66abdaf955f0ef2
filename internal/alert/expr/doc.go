// Package expr has the language of alert rules: expressions in CEL over a vocabulary that is made of what the query API answers.
//
//	c, err := expr.NewCompiler()
//	e, faults := c.Compile(expr.ScopePod, `durationIn("NotReady") > duration("5m")`, cel.BoolType)
//	m := &expr.Moment{Now: now, Records: detail.History}
//	m.SetPod(detail)
//	isTrue, err := e.IsTrue(ctx, m) // may be another from m.Next on, and not before
//
// An expression that needs a fact which is not known is not true. An expression has a bounded cost, estimated when it is compiled
// and counted when it is evaluated. Functions of time note the next instant at which their value can change.
//
// A [Compiler] is used by one goroutine. Expressions and templates may be evaluated from any, each with a [Moment] of its own.
package expr
