package rules

import "fmt"

// Over returns the rules of a base and of s. A rule of s replaces the one of the base that has its name.
func (s *Set) Over(base *Set) *Set {
	var all []*Rule
	for _, r := range base.Rules() {
		if s.Rule(r.Name) == nil {
			all = append(all, r)
		}
	}
	return &Set{rules: append(all, s.Rules()...)}
}

// ReloadWith replaces the rules by those that a function loads. If that fails, the rules in force stay, and
// the metric of the last reload says so.
func (e *Engine) ReloadWith(load func() (*Set, error)) error {
	set, err := load()
	if err != nil {
		e.core.metrics.reloaded.Set(0)
		e.later(func(c *core) { c.notLoaded = err.Error() })
		e.log.Error("rules were not reloaded, those in force stay", "err", err)
		return fmt.Errorf("rules: %w", err)
	}
	e.Reload(set)
	return nil
}
