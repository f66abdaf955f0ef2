package logs

import (
	"regexp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podcgroup"
)

// Victim is a process killed by the kernel.
type Victim struct {
	// UID is the pod's, empty if the process was not in one; ContainerID is the runtime's.
	UID         types.UID `json:"uid,omitempty"`
	ContainerID string    `json:"containerID,omitempty"`
	PID         string    `json:"pid,omitempty"`
	Process     string    `json:"process,omitempty"`
}

// companions are texts of lines that match no rule but have details about the next matching line.
var companions = [][]byte{[]byte("oom-kill:constraint=")}

// The kernel announces a kill with the control group and the PID of its victim:
//
//	oom-kill:constraint=CONSTRAINT_MEMCG,…,task_memcg=/kubepods/…/podUID/ID,task=NAME,pid=PID,uid=0
var announced = regexp.MustCompile(`oom-kill:constraint=.*task_memcg=(\S*?),task=.*,pid=(\d+),uid=`)

// announcements remember the control groups of the last processes that the kernel announced.
type announcements struct {
	groups map[string]string // by PID
	order  []string
}

// maxAnnouncements is how many there can be before their kills are logged: usually one.
const maxAnnouncements = 64

// take reads an announcement, if the line is one.
func (a *announcements) take(text string) {
	m := announced.FindStringSubmatch(text)
	if m == nil {
		return
	}
	if a.groups == nil {
		a.groups = map[string]string{}
	}
	if _, known := a.groups[m[2]]; !known {
		if a.order = append(a.order, m[2]); len(a.order) > maxAnnouncements {
			delete(a.groups, a.order[0])
			a.order = a.order[1:]
		}
	}
	a.groups[m[2]] = m[1]
}

// victim returns the known facts of a killed process.
func (a *announcements) victim(pid, process string) *Victim {
	if pid == "" {
		return nil
	}
	uid, container := podcgroup.Split(a.groups[pid])
	return &Victim{UID: uid, ContainerID: container, PID: pid, Process: process}
}
