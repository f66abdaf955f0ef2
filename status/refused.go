package status

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/internal/backoff"
)

// A field that the API server refuses must not block the rest of a status. A 422 names the fields;
// the rest is sent without them, and the fields are tried again on a slow schedule, or when the
// node reports another value. A status that is too large is sent without its largest part, and
// without the next largest part if needed.

// A write that repeatedly fails with an internal error, as far as known for this pod alone, is tried without
// the lists: so readiness and phase are stored if one of the lists is the cause.

// refusedBackoff spaces the attempts for fields that make the API server fail, or that are too large. Fields
// that the server refuses by name may be accepted after an upgrade of the server, and are tried on the schedule
// of overruled fields.
var refusedBackoff = backoff.Schedule{First: time.Minute, Limit: 10 * time.Minute}

// suspectEvery is the number of failed attempts after which an attempt is made without the lists, suspectEnd the number, reached
// after about a minute, before which the lists of a pod that has ended are sent: a controller may act on the end as soon as the API
// has it, and finds no exit code without the lists.
const (
	suspectEvery = 4
	suspectEnd   = 12
)

// refusal has the fields of a pod that the API server refuses.
type refusal struct {
	fields []string
	// in is the status that had the refused values; never changed.
	in  *v1.PodStatus
	err error
}

// pairs are fields that the server requires together.
var pairs = map[string]string{"podIP": "podIPs", "podIPs": "podIP", "hostIP": "hostIPs", "hostIPs": "hostIP"}

// refusedFields returns the fields of the status that an answer refuses, as their names in JSON; a
// condition is "conditions[TYPE]". The result is empty if the response is not such a refusal, or
// refuses a field that cannot be left out.
func refusedFields(err error, written *v1.PodStatus) []string {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	add := func(field string) {
		if !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	for _, cause := range status.Status().Details.Causes {
		path, ok := strings.CutPrefix(cause.Field, "status.")
		if !ok {
			return nil
		}
		key, _, _ := strings.Cut(path, ".")
		key, index, indexed := strings.Cut(key, "[")
		if key == "phase" || statusField(written, key) == nil {
			return nil
		}
		if key == "conditions" && indexed {
			i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
			if err != nil || i >= len(written.Conditions) {
				return nil
			}
			key = "conditions[" + string(written.Conditions[i].Type) + "]"
		}
		add(key)
		if other, paired := pairs[key]; paired {
			add(other)
		}
	}
	return fields
}

// statusField returns the field of a status by its JSON name, or nil.
func statusField(status *v1.PodStatus, name string) *reflect.Value {
	value := reflect.ValueOf(status).Elem()
	for i := range value.NumField() {
		tag, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		if tag == name {
			field := value.Field(i)
			return &field
		}
	}
	return nil
}

// leaveOut gives a field of a status the value that the API has, so that it is not sent.
func leaveOut(status, api *v1.PodStatus, field string) {
	if name, ok := strings.CutPrefix(field, "conditions["); ok {
		leaveOutCondition(status, api, v1.PodConditionType(strings.TrimSuffix(name, "]")))
		return
	}
	statusField(status, field).Set(*statusField(api, field))
}

func leaveOutCondition(status, api *v1.PodStatus, t v1.PodConditionType) {
	is := func(c v1.PodCondition) bool { return c.Type == t }
	conditions := slices.DeleteFunc(slices.Clone(status.Conditions), is)
	if i := slices.IndexFunc(api.Conditions, is); i >= 0 {
		conditions = append(conditions, api.Conditions[i])
	}
	status.Conditions = conditions
}

// standing returns the refused fields that still have the refused value.
func (r refusal) standing(status *v1.PodStatus) []string {
	var fields []string
	for _, field := range r.fields {
		key, _, _ := strings.Cut(field, "[")
		if reflect.DeepEqual(statusField(status, key).Interface(), statusField(r.in, key).Interface()) {
			fields = append(fields, field)
		}
	}
	return fields
}

// refuse records the fields that the server refuses; the rest will be sent without them. It reports
// whether one of the fields was not left out already.
func (t *turn) refuse(p *plan, err error, written *v1.PodStatus) bool {
	fields := refusedFields(err, written)
	switch {
	case tooLarge(err):
		fields = largestPart(written, t.leftOut)
	case failureOf(err) == internal && t.suspects(p):
		fields = slices.Clone(lists)
	}
	fields = slices.DeleteFunc(fields, func(f string) bool { return slices.Contains(t.leftOut, f) })
	if len(fields) == 0 {
		return false
	}
	t.leftOut = append(t.leftOut, fields...)
	t.refused = &refusal{fields: t.leftOut, in: &p.status, err: err}
	return true
}

// suspects reports whether the lists of a status may be why the server has failed with the pod.
func (t *turn) suspects(p *plan) bool {
	attempts := t.m.cache.attempts(p.uid)
	if p.final() && attempts < suspectEnd {
		return false
	}
	return p.refusedBefore || t.alone && attempts%suspectEvery == 0
}

// lists are the parts of a status that are left out if the server fails with one of them.
var lists = []string{"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses", "resourceClaimStatuses"}

// schedule spaces the attempts for refused fields.
func (r *refusal) schedule() backoff.Schedule {
	if apierrors.IsInvalid(r.err) {
		return overruledBackoff
	}
	return refusedBackoff
}

// tryRefusedLater ends a turn in which fields were left out: they are tried again later.
func (t *turn) tryRefusedLater(p *plan, grave bool) {
	var wait time.Duration
	if t.refused != nil {
		schedule := t.refused.schedule()
		if grave {
			schedule = graveBackoff
		}
		for _, field := range t.refused.fields {
			if key, _, _ := strings.Cut(field, "["); !slices.Contains(p.leftOut, field) {
				t.m.metrics.refusedFields.WithLabelValues(key).Inc()
			}
		}
		t.m.opts.Logger.Warn("API server rejects fields of the status; the rest was sent without them",
			"pod", p.podName(), "uid", p.target, "version", p.version, "fields", t.refused.fields, "err", t.refused.err)
		wait = t.m.cache.failed(p.uid, t.refused.err, waitRefused, schedule, time.Now())
		t.m.cache.setRefusal(p.uid, *t.refused)
	} else {
		wait = max(time.Until(p.tryRefusedAt), time.Second)
	}
	if !t.again {
		t.again, t.wait, t.urgency = true, wait, background
		if grave {
			t.urgency = p.urgency()
		}
	}
}
