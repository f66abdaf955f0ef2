package configfile

import (
	"reflect"
	"strings"
)

// A field of a config has the name of its yaml tag; the fields of a struct with the tag ",inline" are those
// of the struct around it. A field with the tag "-" is not a setting: programs and tests set it.

func tag(f reflect.StructField) (name string, inline bool) {
	name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name, options == "inline"
}

// fieldType returns the type of a struct's field.
func fieldType(t reflect.Type, name string) (reflect.Type, bool) {
	for f := range t.Fields() {
		fieldName, inline := tag(f)
		if inline {
			if found, ok := fieldType(f.Type, name); ok {
				return found, true
			}
		} else if fieldName == name {
			return f.Type, true
		}
	}
	return nil, false
}

// leaves returns the paths of all fields that are not structs, in their order.
func leaves(t reflect.Type, prefix string) []string {
	var paths []string
	for f := range t.Fields() {
		name, inline := tag(f)
		switch {
		case name == "-":
		case inline:
			paths = append(paths, leaves(f.Type, prefix)...)
		case f.Type.Kind() == reflect.Struct:
			paths = append(paths, leaves(f.Type, prefix+name+".")...)
		default:
			paths = append(paths, prefix+name)
		}
	}
	return paths
}

// siblings returns the names of the fields below a prefix such as "log.".
func siblings(t reflect.Type, prefix string) []string {
	var names []string
	for _, path := range leaves(t, "") {
		if below, ok := strings.CutPrefix(path, prefix); ok {
			name, _, _ := strings.Cut(below, ".")
			names = append(names, name)
		}
	}
	return names
}

// pointer returns a pointer to the field of a config that a path names.
func pointer(config reflect.Value, path string) any {
	name, rest, nested := strings.Cut(path, ".")
	for f, value := range config.Fields() {
		fieldName, inline := tag(f)
		switch {
		case inline:
			if found := pointer(value, path); found != nil {
				return found
			}
		case fieldName != name:
		case nested:
			return pointer(value, rest)
		default:
			return value.Addr().Interface()
		}
	}
	return nil
}
