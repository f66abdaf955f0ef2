package process

// variables are an environment in the making: in order, the last value of a name wins.
type variables struct {
	names  []string
	values map[string]string
}

func (v *variables) set(name, value string) {
	if v.values == nil {
		v.values = map[string]string{}
	}
	if _, known := v.values[name]; !known {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

func (v *variables) lookup(name string) (string, bool) {
	value, ok := v.values[name]
	return value, ok
}

func (v *variables) list() []string {
	list := make([]string, len(v.names))
	for i, name := range v.names {
		list[i] = name + "=" + v.values[name]
	}
	return list
}
