package api

import (
	"net/http"
	"reflect"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// schema is a JSON object of the OpenAPI document.
type schema = map[string]any

// serveOpenAPI describes the routes and their types.
func (s *Server) serveOpenAPI(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
	answer(w, http.StatusOK, document(s.routes))
}

func document(routes []route) schema {
	named := schemas{}
	failure := schema{
		"description": "Anything else: a Status object, as the API server answers.",
		"content":     schema{"application/json": schema{"schema": named.of(reflect.TypeFor[metav1.Status]())}},
	}
	paths := schema{}
	for _, r := range routes {
		content := schema{"schema": schema{"type": "string"}}
		switch {
		case r.result != nil:
			content["schema"] = named.of(reflect.TypeOf(r.result))
		case r.content == "application/json":
			content["schema"] = schema{"type": "object"}
		}
		get := schema{
			"summary": r.doc,
			"responses": schema{
				"200":     schema{"description": "OK", "content": schema{r.content: content}},
				"default": failure,
			},
		}
		if parameters := parametersOf(r); len(parameters) > 0 {
			get["parameters"] = parameters
		}
		paths[r.path] = schema{"get": get}
	}
	for _, t := range []reflect.Type{reflect.TypeFor[GonePod]()} { // of events
		named.of(t)
	}
	return schema{
		"openapi": "3.0.3",
		"info": schema{
			"title": "statusd", "version": "v1",
			"description": "What a node knows of its pods: state, explanation, history, delivery. Read-only.",
		},
		"paths":      paths,
		"components": schema{"schemas": named},
	}
}

func parametersOf(r route) []schema {
	var list []schema
	text := schema{"type": "string"}
	for segment := range strings.SplitSeq(r.path, "/") {
		if strings.HasPrefix(segment, "{") {
			list = append(list, schema{"name": strings.Trim(segment, "{}"), "in": "path", "required": true, "schema": text})
		}
	}
	for _, p := range r.parameters {
		list = append(list, schema{"name": p.name, "in": "query", "description": p.doc, "schema": text})
	}
	return list
}

// schemas are those of the types of this module, by name.
type schemas map[string]any

// of returns the schema of a type; structs are defined once and referred to.
func (named schemas) of(t reflect.Type) schema {
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[metav1.Time]():
		return schema{"type": "string", "format": "date-time"}
	case reflect.TypeFor[resource.Quantity]():
		return schema{"type": "string"}
	case reflect.TypeFor[v1.Pod](), reflect.TypeFor[v1.PodList](), reflect.TypeFor[metav1.Status]():
		return schema{"type": "object", "description": "Kubernetes " + t.Name() + ", apiVersion v1."}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return named.of(t.Elem())
	case reflect.Slice:
		return schema{"type": "array", "items": named.of(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": named.of(t.Elem())}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Float64:
		return schema{"type": "number"}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return schema{"type": "integer"}
	case reflect.Struct:
		return named.ofStruct(t)
	}
	return schema{"type": "string"}
}

func (named schemas) ofStruct(t reflect.Type) schema {
	reference := schema{"$ref": "#/components/schemas/" + t.Name()}
	if _, done := named[t.Name()]; done {
		return reference
	}
	properties := schema{}
	definition := schema{"type": "object", "properties": properties}
	named[t.Name()] = definition // before its fields, which may refer to it
	var required []string
	var add func(reflect.Type)
	add = func(t reflect.Type) {
		for field := range t.Fields() {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case !field.IsExported():
			case field.Anonymous && name == "":
				add(field.Type)
			default:
				properties[name] = named.of(field.Type)
				if !strings.Contains(options, "omitempty") {
					required = append(required, name)
				}
			}
		}
	}
	add(t)
	if len(required) > 0 {
		definition["required"] = required
	}
	return reference
}
