package queryapi

import (
	"net/http"
	"reflect"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/machine/logs"
	"github.com/statusd/statusd/internal/view"
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
		operations := schema{}
		if !r.unread {
			operations["get"] = named.operation(r, r.doc, r.content, r.result, failure)
		}
		for _, write := range r.writes {
			operation := named.operation(r, write.doc+" Served on the Unix socket only.", "application/json", write.result, failure)
			if write.body != nil {
				operation["requestBody"] = schema{"required": true, "content": schema{"application/json": schema{"schema": named.of(reflect.TypeOf(write.body))}}}
			}
			operations[strings.ToLower(write.method)] = operation
		}
		paths[r.path] = operations
	}
	for _, t := range []reflect.Type{reflect.TypeFor[view.GonePod]()} { // of events
		named.of(t)
	}
	return schema{
		"openapi": "3.0.3",
		"info": schema{
			"title": "statusd", "version": "v1",
			"description": "The pods of a node: state, explanation, history, delivery, differences, alerts. Read-only, except for silences on the Unix socket.",
		},
		"paths":      paths,
		"components": schema{"schemas": named},
	}
}

// operation describes one method of a path.
func (named schemas) operation(r route, doc, contentType string, result any, failure schema) schema {
	content := schema{"schema": schema{"type": "string"}}
	switch {
	case result != nil:
		content["schema"] = named.of(reflect.TypeOf(result))
	case contentType == "application/json":
		content["schema"] = schema{"type": "object"}
	}
	operation := schema{
		"summary": doc,
		"responses": schema{
			"200":     schema{"description": "OK", "content": schema{contentType: content}},
			"default": failure,
		},
	}
	if parameters := parametersOf(r); len(parameters) > 0 {
		operation["parameters"] = parameters
	}
	return operation
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

// schemas are the schemas of the types of this module, by name.
type schemas map[string]any

// nameOf is the name of a type in the document. Several packages have a report.
func nameOf(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[audit.Report]():
		return "AuditReport"
	case reflect.TypeFor[guard.Report]():
		return "GuardReport"
	}
	if t.PkgPath() == reflect.TypeFor[logs.Report]().PkgPath() { // whose names are short
		return "Log" + t.Name()
	}
	return t.Name()
}

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
	name := nameOf(t)
	reference := schema{"$ref": "#/components/schemas/" + name}
	if _, done := named[name]; done {
		return reference
	}
	properties := schema{}
	definition := schema{"type": "object", "properties": properties}
	named[name] = definition // before its fields, which may refer to it
	var required []string
	var add func(reflect.Type)
	add = func(t reflect.Type) {
		for field := range t.Fields() {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case !field.IsExported(), name == "-":
			case field.Anonymous && name == "":
				add(field.Type)
			default:
				properties[name] = named.of(field.Type)
				if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
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
