// Package environ has the variables of a process in the making.
package environ

import "iter"

// Variables have an order; the last value of a name wins and keeps the place of the first. The zero value is empty.
type Variables struct {
	names  []string
	values map[string]string
}

// Set sets one variable.
func (v *Variables) Set(name, value string) {
	if v.values == nil {
		v.values = map[string]string{}
	}
	if _, known := v.values[name]; !known {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

// Lookup returns the value of a variable, and whether it is set.
func (v *Variables) Lookup(name string) (string, bool) {
	value, ok := v.values[name]
	return value, ok
}

// All returns names and values in their order.
func (v *Variables) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, name := range v.names {
			if !yield(name, v.values[name]) {
				return
			}
		}
	}
}

// Strings returns the variables as NAME=value, in their order.
func (v *Variables) Strings() []string {
	list := make([]string, 0, len(v.names))
	for name, value := range v.All() {
		list = append(list, name+"="+value)
	}
	return list
}
