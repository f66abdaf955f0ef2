package expr

import (
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/statusd/statusd/explain"
)

var kubeletFields = []field{
	{"health", "healthy, degraded, unhealthy or unknown", cel.StringType, on(func(k *kubeletFacts) any { return given(string(k.health())) })},
	{"since", "since when it is so", cel.TimestampType, on(func(k *kubeletFacts) any { return stamp(k.verdict().Since) })},
	{"reasons", "what is wrong", listOf("Reason"), func(o *object) any {
		k := o.v.(*kubeletFacts)
		if k.report == nil {
			return nil
		}
		return list(o, reasonType, k.report.Reasons)
	}},
	{"restartHelps", "a restart would help", cel.BoolType, on(func(k *kubeletFacts) any {
		if k.report == nil {
			return nil
		}
		return types.Bool(k.report.Helps)
	})},
	{"do", "what to do if a restart does not help", cel.StringType, on(func(k *kubeletFacts) any { return text(k.verdict().Do) })},
	{"running", "there is a process", cel.BoolType, on(func(k *kubeletFacts) any { return boolean(k.Running) })},
	{"started", "when the process was started", cel.TimestampType, on(func(k *kubeletFacts) any {
		if k.report == nil {
			return nil
		}
		return stamp(k.report.Started)
	})},
	{"restarts", "how many restarts the guard knows of", cel.IntType, on(func(k *kubeletFacts) any {
		if k.report == nil {
			return nil
		}
		return types.Int(len(k.report.Restarts))
	})},
	{"withheld", "why the guard does not restart it; empty if it may", cel.StringType, on(func(k *kubeletFacts) any {
		if k.report == nil {
			return nil
		}
		return text(k.report.Withheld)
	})},
	{"plegDuration", "how long the kubelet takes to list the containers of the runtime", cel.DurationType, on(func(k *kubeletFacts) any { return span(k.PLEG) })},
	{"plegLastSeen", "when the kubelet last began to list them", cel.TimestampType, on(func(k *kubeletFacts) any { return instant(k.PLEGLastSeen) })},
	{"podStartDuration", "how long pods take to start", cel.DurationType, on(func(k *kubeletFacts) any { return span(k.PodStart) })},
	{"clientCertificateExpires", "when its client certificate expires", cel.TimestampType, on(func(k *kubeletFacts) any { return instant(k.ClientCertificate) })},
	{"serverCertificateExpires", "when its server certificate expires", cel.TimestampType, on(func(k *kubeletFacts) any { return instant(k.ServerCertificate) })},
	{"certificateRenewalErrors", "how often the renewal of a certificate has failed since the last success", cel.IntType, on(func(k *kubeletFacts) any {
		if k.CertificateErrors == nil {
			return nil
		}
		return types.Int(*k.CertificateErrors)
	})},
	{"runtimeErrors", "which share of its requests to the runtime fails, 0 to 1", cel.DoubleType, on(func(k *kubeletFacts) any {
		if k.RuntimeErrors == nil {
			return nil
		}
		return types.Double(*k.RuntimeErrors)
	})},
}

func boolean(b *bool) any {
	if b == nil {
		return nil
	}
	return types.Bool(*b)
}

func span(d *time.Duration) any {
	if d == nil {
		return nil
	}
	return types.Duration{Duration: *d}
}

// countFields are one per state, and the sum.
var countFields = func() []field {
	fields := []field{{"total", "all pods", cel.IntType, on(func(c map[explain.State]int) any {
		total := 0
		for _, n := range c {
			total += n
		}
		return types.Int(total)
	})}}
	for _, s := range []struct {
		name  string
		state explain.State
	}{
		{"unscheduled", explain.StateUnscheduled}, {"starting", explain.StateStarting}, {"initializing", explain.StateInitializing},
		{"ready", explain.StateReady}, {"notReady", explain.StateNotReady}, {"terminating", explain.StateTerminating},
		{"succeeded", explain.StateSucceeded}, {"failed", explain.StateFailed}, {"rejected", explain.StateRejected},
		{"evicted", explain.StateEvicted}, {"unknown", explain.StateUnknown},
	} {
		fields = append(fields, field{s.name, "pods in state " + string(s.state), cel.IntType, on(func(c map[explain.State]int) any { return types.Int(c[s.state]) })})
	}
	return fields
}()

var nodeFields = []field{
	{"name", "its name", cel.StringType, on(func(n *nodeFacts) any { return text(n.Name) })},
	{"version", "the version that it reports", cel.StringType, on(func(n *nodeFacts) any { return text(n.Version) })},
	{"runtime", "the container runtime and its version", cel.StringType, on(func(n *nodeFacts) any { return text(n.Runtime) })},
	{"ready", "its condition Ready is True", cel.BoolType, on(func(n *nodeFacts) any {
		for _, c := range n.conditions {
			if c.kind == "Ready" {
				return types.Bool(c.status == "True")
			}
		}
		return nil
	})},
	{"pressure", "its conditions of pressure that are True, such as `MemoryPressure`", cel.ListType(cel.StringType), on(func(n *nodeFacts) any { return texts(n.pressure()) })},
	{"conditions", "its conditions by type", cel.MapType(cel.StringType, cel.ObjectType("Condition")), func(o *object) any { return conditionMap(o, o.v.(*nodeFacts).conditions) }},
	{"capacity", "what it has, by resource: CPUs, bytes, numbers", cel.MapType(cel.StringType, cel.DoubleType), on(func(n *nodeFacts) any { return quantities(n.Capacity) })},
	{"allocatable", "what pods may request", cel.MapType(cel.StringType, cel.DoubleType), on(func(n *nodeFacts) any { return quantities(n.Allocatable) })},
	{"requested", "what pods request", cel.MapType(cel.StringType, cel.DoubleType), on(func(n *nodeFacts) any { return quantities(n.Requested) })},
	{"pods", "its pods by state", cel.ObjectType("Counts"), func(o *object) any {
		return &object{typ: countsType, at: o.at, v: o.v.(*nodeFacts).Counts}
	}},
	{"pending", "how many pods have changes that the API server does not know", cel.IntType, on(func(n *nodeFacts) any { return types.Int(n.Delivery.Pending) })},
	{"pendingSince", "since when the oldest of these changes waits", cel.TimestampType, on(func(n *nodeFacts) any { return stamp(n.pendingSince) })},
	{"lastError", "the last error of a delivery", cel.StringType, on(func(n *nodeFacts) any { return text(n.Delivery.LastError) })},
	{"leaseRenewed", "when its lease was last renewed", cel.TimestampType, on(func(n *nodeFacts) any { return instant(n.Delivery.LeaseRenewed) })},
	{"unreachableSince", "since when the API server has not been reached; unknown if it is", cel.TimestampType, on(func(n *nodeFacts) any { return instant(n.Delivery.UnreachableSince) })},
	{"problems", "what is wrong with it, as clauses", cel.ListType(cel.StringType), on(func(n *nodeFacts) any { return texts(n.Problems) })},
	{"drift", "how many differences last longer than news takes, also of pods", cel.IntType, on(func(n *nodeFacts) any { return types.Int(n.Drift) })},
	{"differences", "how what the API reports is not true of the node, and of pods that it does not list", listOf("Difference"), func(o *object) any { return list(o, differenceType, o.v.(*nodeFacts).Differences) }},
	{"silentSides", "the sides of an audit that do not answer", cel.ListType(cel.StringType), on(func(n *nodeFacts) any { return texts(n.silent()) })},
	{"clockStep", "how far the clock of the machine last jumped", cel.DurationType, on(func(n *nodeFacts) any {
		if n.ClockStepped.IsZero() {
			return nil
		}
		return types.Duration{Duration: n.ClockStep}
	})},
	{"clockStepped", "when it did; unknown if it has not", cel.TimestampType, on(func(n *nodeFacts) any { return stamp(n.ClockStepped) })},
}
