package view

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/history"
)

// GoneSummary returns the row of a deleted pod from its history: how it ended, and by whose action.
func GoneSummary(h PodHistory) PodSummary {
	s := PodSummary{Namespace: h.Namespace, Name: h.Name, UID: h.UID, Created: known(h.Created), Gone: h.Gone, State: explain.StateUnknown, Status: "Gone"}
	for _, r := range h.Records {
		if r.Kind == history.KindPhase {
			s.Phase = v1.PodPhase(r.To)
		}
		if r.Kind == history.KindRestart {
			s.Restarts++
		}
	}
	switch s.Phase {
	case v1.PodSucceeded:
		s.State = explain.StateSucceeded
	case v1.PodFailed:
		s.State = explain.StateFailed
	}
	s.Brief = strings.Join(ends(h.Records), " · ")
	s.Why = "Pod " + h.Namespace + "/" + h.Name + " is gone"
	if s.Brief != "" {
		s.Why += ": " + s.Brief
	}
	s.Why += "."
	return s
}

// disruptions describe the initiator of a pod's end, by the reason of its condition
// DisruptionTarget.
var disruptions = map[string]string{
	"EvictionByEvictionAPI":  "it was evicted through the API, as kubectl drain, an autoscaler or a descheduler do",
	"PreemptionByScheduler":  "the scheduler made room for a pod of higher priority",
	"DeletionByTaintManager": "a NoExecute taint of the node ended it",
	"DeletionByPodGC":        "the garbage collector of pods deleted it, since its node is gone or it had ended",
	"TerminationByKubelet":   "the node ended it, for lack of a resource or for its shutdown",
}

// ends are the clauses about the end of a pod, its initiator first.
func ends(records []Record) []string {
	var by, how []string
	add := func(list *[]string, clause string) {
		if clause = strings.TrimSuffix(strings.TrimSpace(clause), "."); clause != "" {
			*list = append(*list, clause)
		}
	}
	for _, r := range records {
		switch {
		case r.Kind == history.KindAction && r.Subject == "evict" && r.To == "done":
			add(&by, "alert rule "+r.Reason+" evicted it")
		case r.Kind == history.KindCondition && r.Subject == string(v1.DisruptionTarget) && r.To == string(v1.ConditionTrue):
			who := disruptions[r.Reason]
			if who == "" {
				who = "it was to be ended (" + r.Reason + ")"
			}
			if r.Reason == "TerminationByKubelet" || disruptions[r.Reason] == "" {
				who += detail(r.Message)
			}
			if len(by) == 0 || r.Reason != "EvictionByEvictionAPI" { // statusd's own actions evict through the API too
				add(&by, who)
			}
		case r.Kind == history.KindDeletion && r.To == "ending" && len(by) == 0:
			add(&by, strings.TrimPrefix(detail(r.Message), ": ")+reasonOf(r))
		case r.Kind == history.KindPhase && r.To == string(v1.PodFailed):
			add(&how, "it had failed"+reasonOf(r)+detail(r.Message))
		case r.Kind == history.KindPhase && r.To == string(v1.PodSucceeded):
			add(&how, "it had done its work")
		case r.Kind == history.KindContainer && r.To == "terminated" && r.Message != "" && !strings.HasPrefix(r.Message, "exit code 0"):
			how = append(how[:min(len(how), 2)], "container "+r.Container+" ended"+detail(r.Message))
		}
	}
	return append(by, how...)
}

func reasonOf(r Record) string {
	if r.Reason == "" || r.Reason == "Deleted" {
		return ""
	}
	return " (" + r.Reason + ")"
}

func detail(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

// GoneDetail returns all details of a deleted pod from its history.
func GoneDetail(h PodHistory) PodDetail {
	s := GoneSummary(h)
	d := PodDetail{
		PodSummary: s, ContainerDetails: []ContainerDetail{}, History: h.Records,
		Explanation: explain.Explanation{Namespace: h.Namespace, Name: h.Name, State: s.State, Since: h.Gone},
	}
	if s.Brief != "" {
		d.Explanation.Causes = []explain.Cause{{Code: explain.CodeEnded, Since: h.Gone, Text: s.Brief, Next: &explain.Next{Wait: "the history of the pod is kept for a while"}}}
	}
	if d.History == nil {
		d.History = []Record{}
	}
	d.ContainerDetails = goneContainers(h.Records)
	return d
}

// goneContainers are the containers of a pod that is gone, as they ended.
func goneContainers(records []Record) []ContainerDetail {
	list, at := []ContainerDetail{}, map[string]int{}
	for _, r := range records {
		if r.Container == "" || r.Kind != history.KindContainer && r.Kind != history.KindRestart {
			continue
		}
		i, ok := at[r.Container]
		if !ok {
			i = len(list)
			at[r.Container] = i
			list = append(list, ContainerDetail{Name: r.Container, Kind: KindMain, State: ContainerTerminated})
		}
		if r.Kind == history.KindRestart {
			list[i].Restarts++
			continue
		}
		observed := r.Observed.Truncate(time.Second)
		list[i].State, list[i].Reason, list[i].Message, list[i].Since = ContainerState(r.To), r.Reason, r.Message, &observed
	}
	return list
}
