package expr

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	lines "github.com/statusd/statusd/internal/text" // text is a value of CEL here
)

// objectType is a type of the vocabulary, with the fields that expressions can read.
type objectType struct {
	name   string
	doc    string
	fields []field
	byName map[string]*field
	cel    *cel.Type
}

// field is one field of a type. Its value is nil if the fact is not known.
type field struct {
	name, doc string
	typ       *cel.Type
	get       func(o *object) any
}

// object is a value of the vocabulary within one evaluation.
type object struct {
	typ *objectType
	at  *Moment
	v   any
}

func newType(name, doc string, fields ...field) *objectType {
	t := &objectType{name: name, doc: doc, fields: fields, byName: map[string]*field{}, cel: cel.ObjectType(name)}
	for i := range t.fields {
		t.byName[t.fields[i].name] = &t.fields[i]
	}
	return t
}

// unknownFact is the error of an expression that needs a fact which is not known. Such an
// expression is not true.
type unknownFact struct{ name string }

func (u unknownFact) Error() string { return u.name + " is not known" }

// ConvertToNative, ConvertToType, Equal, Type and Value implement [ref.Val].
func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("a %s is no %v", o.typ.name, t)
}

func (o *object) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return o.typ.cel
	}
	return types.NewErr("a %s is no %s", o.typ.name, t.TypeName())
}

func (o *object) Equal(other ref.Val) ref.Val {
	same, ok := other.(*object)
	return types.Bool(ok && same.typ == o.typ && same.v == o.v)
}

func (o *object) Type() ref.Type { return o.typ.cel }

func (o *object) Value() any { return o }

// provider knows the types of the vocabulary, and all others as CEL does. It notes the missing
// fields that were asked for, for the text of the mistake. It is used for one check only.
type provider struct {
	types.Provider
	missing []missingField
}

type missingField struct{ typ, name string }

func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if t, ok := vocabulary[name]; ok {
		return types.NewTypeTypeWithParam(t.cel), true
	}
	return p.Provider.FindStructType(name)
}

func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	if t, ok := vocabulary[name]; ok {
		return t.names(), true
	}
	return p.Provider.FindStructFieldNames(name)
}

func (t *objectType) names() []string {
	names := make([]string, len(t.fields))
	for i := range t.fields {
		names[i] = t.fields[i].name
	}
	slices.Sort(names)
	return names
}

func (p *provider) FindStructFieldType(name, fieldName string) (*types.FieldType, bool) {
	t, ok := vocabulary[name]
	if !ok {
		return p.Provider.FindStructFieldType(name, fieldName)
	}
	f, ok := t.byName[fieldName]
	if !ok {
		p.missing = append(p.missing, missingField{name, fieldName})
		return nil, false
	}
	return &types.FieldType{
		Type:  f.typ,
		IsSet: func(target any) bool { o, ok := target.(*object); return ok && f.get(o) != nil },
		GetFrom: func(target any) (any, error) {
			o, ok := target.(*object)
			if !ok {
				return nil, fmt.Errorf("%T has no field %s", target, fieldName)
			}
			value := f.get(o)
			if value == nil {
				return nil, unknownFact{t.name + "." + f.name}
			}
			return value, nil
		},
	}, true
}

func (p *provider) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if _, ok := vocabulary[name]; ok {
		return types.NewErr("a %s cannot be made, only read", name)
	}
	return p.Provider.NewValue(name, fields)
}

// The bounds of values, on which the estimates of costs rest.
const (
	maxText  = 1024
	maxItems = 100
)

func text(s string) types.String { return types.String(lines.Cut(s, maxText)) }

// given is a text that is not known if it is empty.
func given(s string) any {
	if s == "" {
		return nil
	}
	return text(s)
}

func instant(t *time.Time) any {
	if t == nil || t.IsZero() {
		return nil
	}
	return types.Timestamp{Time: *t}
}

func stamp(t time.Time) any { return instant(&t) }

func texts(list []string) ref.Val {
	cut := make([]string, min(len(list), maxItems))
	for i := range cut {
		cut[i] = lines.Cut(list[i], maxText)
	}
	return types.NewStringList(types.DefaultTypeAdapter, cut)
}

func textMap(m map[string]string) ref.Val {
	return types.NewStringStringMap(types.DefaultTypeAdapter, m)
}

// list makes the objects of a list.
func list[T any](o *object, t *objectType, items []T) ref.Val {
	values := make([]ref.Val, min(len(items), maxItems))
	for i := range values {
		values[i] = &object{typ: t, at: o.at, v: &items[i]}
	}
	return types.NewRefValList(types.DefaultTypeAdapter, values)
}
