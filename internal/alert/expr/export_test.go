package expr

// TemplateTypes are what an expression in a template may be.
var TemplateTypes = templateTypes

// Evaluate is evaluate, for tests.
var Evaluate = (*Expression).evaluate
