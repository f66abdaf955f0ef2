package expr

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
)

// Reference lists the names that expressions can use, for the documentation.
type Reference struct {
	Variables, Functions []Entry
	Types                []TypeEntry
}

// Entry is a variable, a function or a field. Variables have Scopes, functions Signature and On, the types that have them.
type Entry struct{ Name, Type, Doc, Scopes, Signature, On string }

// TypeEntry is a type with its fields.
type TypeEntry struct {
	Name, Doc string
	Fields    []Entry
}

// Describe returns the names that expressions can use.
func Describe() (all Reference) {
	for _, v := range variables {
		all.Variables = append(all.Variables, Entry{Name: v.name, Type: typeNames([]*cel.Type{v.typ}), Doc: v.doc, Scopes: scopeNames(v.scopes)})
	}
	for _, f := range functions {
		all.Functions = append(all.Functions, Entry{Signature: f.signature, On: strings.Join(f.on, ", "), Doc: f.doc})
	}
	for _, t := range []*objectType{podType, containerType, probeType, deliveryType, differenceType, conditionType, changeType, nodeType, countsType, kubeletType, reasonType} {
		entry := TypeEntry{Name: t.name, Doc: t.doc}
		for _, f := range t.fields {
			entry.Fields = append(entry.Fields, Entry{Name: f.name, Type: typeNames([]*cel.Type{f.typ}), Doc: f.doc})
		}
		all.Types = append(all.Types, entry)
	}
	return all
}

func scopeNames(list []Scope) string {
	if slices.Equal(list, Scopes) {
		return "all scopes"
	}
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = string(s)
	}
	return "scope " + strings.Join(names, ", ")
}
