package explain_test

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/podstatus"
)

// said is the sentence about a pod, which must be complete.
func said(t *testing.T, f explain.Facts) string {
	t.Helper()
	e := explain.Pod(f)
	checkComplete(t, e)
	return e.Sentence(time.UTC)
}

func wantSaid(t *testing.T, got string, want, never []string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("no %q in %s", w, got)
		}
	}
	for _, w := range never {
		if strings.Contains(got, w) {
			t.Errorf("%q in %s", w, got)
		}
	}
}

// A pod that is evicted for its own volume says nothing of a node that was short of something.
func TestEvictedForItsOwnVolume_DoesNotBlameTheNode(t *testing.T) {
	for message, want := range map[string]string{
		`Usage of EmptyDir volume "cache" exceeds the limit "1Mi".`:                    "raise sizeLimit",
		`Container db exceeded its local ephemeral storage limit "1Mi".`:               "raise the limit of ephemeral-storage",
		`Pod ephemeral local storage usage exceeds the total limit of containers 1Mi.`: "raise the limit of ephemeral-storage",
	} {
		f := facts(with(v1.PodFailed, ended("Error", 137, ""), v1.ConditionFalse), func(p *v1.Pod) { p.Status.Reason, p.Status.Message = "Evicted", message })
		wantSaid(t, said(t, f), []string{"was evicted", strings.TrimSuffix(message, "."), want}, []string{"the node ran short"})
	}
}

// The line that tells most is found behind the colors of a terminal, and before the lines of an orderly end.
func TestTellingLine_IsFoundBehindColorsAndNoise(t *testing.T) {
	lines := explain.LogLines([]byte("\x1b]0;title\x07\x1b[1;31mERROR\x1b[0m cannot open ledger\n" + strings.Repeat("worker stopped\n", 30)))
	if len(lines) != 12 || lines[0] != "ERROR cannot open ledger" {
		t.Errorf("got %q", lines)
	}
	f := crashing("")
	c := f.Containers["db"]
	c.Log = &explain.Log{Previous: true, Lines: lines}
	f.Containers = map[string]explain.Container{"db": c}
	wantSaid(t, said(t, f), []string{"exit code 1: ERROR cannot open ledger ·"}, nil)
}

// The time at the beginning of a line is not what it tells.
func TestTellingLine_HasNoTime(t *testing.T) {
	for line, want := range map[string]string{
		"2026-03-02 09:14:04 FATAL no such table":                                 "exit code 1: FATAL no such table ·",
		"2026-03-02T09:14:04.123Z ERROR no such table":                            "exit code 1: ERROR no such table ·",
		"[2026-03-02 09:14:04,123] ERROR no such table":                           "exit code 1: ERROR no such table ·",
		"2026/03/02 09:14:04 cannot open ledger":                                  "exit code 1: cannot open ledger ·",
		"F0302 09:14:04.123456       1 main.go:12] failed to load the config":     "exit code 1: failed to load the config ·",
		"2026-03-02 09:14:04 UTC [1] FATAL:  role \"shop\" does not exist failed": "exit code 1: [1] FATAL: role",
		"2026 was an error": "exit code 1: 2026 was an error ·",
	} {
		wantSaid(t, said(t, crashing(line)), []string{want}, nil)
	}
}

// An init container that runs says what the last line of its log says.
func TestRunningInitContainer_SaysWhatItWaitsFor(t *testing.T) {
	f := facts(with(v1.PodPending, waiting("PodInitializing", ""), v1.ConditionFalse), func(p *v1.Pod) {
		p.Spec.InitContainers = []v1.Container{{Name: "wait"}}
		p.Status.InitContainerStatuses = []v1.ContainerStatus{{Name: "wait", State: running(time.Minute), ContainerID: "process://2"}}
	})
	if wanted, previous := f.FailedRun("wait"); !wanted || previous {
		t.Errorf("its log is wanted %t, of the run before %t", wanted, previous)
	}
	f.Containers = map[string]explain.Container{"wait": {Log: &explain.Log{Lines: []string{"hello", "waiting for db:5432 with password=hunter2"}}}}
	wantSaid(t, said(t, f), []string{`init container "wait" is not done: it has been running for 1 min, its log ends with "waiting for db:5432`}, []string{"hunter2"})
}

// A claim that is not bound is named, with the storage class that does not exist.
func TestUnboundClaim_NamesTheStorageClass(t *testing.T) {
	f := facts(func(p *v1.Pod) {
		p.Spec.NodeName = ""
		p.Status.Conditions = []v1.PodCondition{condition(v1.PodScheduled, v1.ConditionFalse, "Unschedulable", "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/1 nodes are available.")}
	})
	wantSaid(t, said(t, f), []string{"its PersistentVolumeClaim is not bound"}, nil)
	f.Claims = []explain.Claim{{Name: "data", Class: "fast", NoClass: true}}
	wantSaid(t, said(t, f), []string{`PersistentVolumeClaim "data" is not bound to a volume: there is no storage class "fast"`, "create the storage class"}, nil)
	f.Claims = []explain.Claim{{Name: "data", Class: "slow", Message: "waiting for a volume to be created by the provisioner"}}
	wantSaid(t, said(t, f), []string{`PersistentVolumeClaim "data" is not bound to a volume: waiting for a volume`, "kubectl describe pvc -n default data"}, []string{"no storage class"})
}

// A probe of a port by a name that the container does not have cannot succeed.
func TestProbeOfAPortThatIsNotThere_IsNamed(t *testing.T) {
	f := facts(with(v1.PodRunning, running(time.Minute), v1.ConditionFalse), func(p *v1.Pod) {
		p.Spec.Containers[0].ReadinessProbe = httpProbe(0)
		p.Spec.Containers[0].ReadinessProbe.HTTPGet.Port = intstr.FromString("http")
	})
	wantSaid(t, said(t, f), []string{`its readiness probe names port "http", which the container does not have`, "correct the name of the port"}, nil)
	f.Pod.Spec.Containers[0].Ports = []v1.ContainerPort{{Name: "http", ContainerPort: 80}}
	wantSaid(t, said(t, f), nil, []string{"does not have"})
}

// No other pod comes from a Job that has given up.
func TestJobThatHasGivenUp_MakesNoOtherPod(t *testing.T) {
	w := explain.Workload{Now: now, Kind: "Job", Namespace: "shop", Name: "web", Wanted: 1, Failed: "BackoffLimitExceeded: Job has reached the specified backoff limit",
		Pods: []explain.Facts{facts(with(v1.PodFailed, ended("Error", 1, "no such table"), v1.ConditionFalse))}}
	wantSaid(t, w.Explain().Text(time.UTC), []string{"exit code 1: no such table", "create it again"}, []string{"makes another pod"})
	cron := explain.Workload{Now: now, Kind: "CronJob", Namespace: "shop", Name: "nightly", Wanted: 1, Schedule: "0 3 * * *", LastJob: &w}
	wantSaid(t, cron.Explain().Text(time.UTC), []string{`CronJob shop/nightly has failed, because its last Job is "web": it has given up`, "exit code 1: no such table"}, nil)
	wantSaid(t, cron.Explain().Text(time.UTC), []string{"the next Job starts at the next time of the schedule", "--from=cronjob/nightly nightly-again"}, []string{"delete the Job and create it again"})
	cron.LastJob = nil
	wantSaid(t, cron.Explain().Text(time.UTC), []string{`it has made no Job yet; its schedule is "0 3 * * *"`}, nil)
}

// What a run said last decides what to do.
func TestAdviceByKindOfCause(t *testing.T) {
	for words, want := range map[string]string{
		"KeyError: 'DATABASE_URL'": "set the variable", "getaddrinfo ENOTFOUND db": "name of the host", "Temporary failure in name resolution": "DNS",
		"bind() to 0.0.0.0:80 failed (13: Permission denied)": "1024", "ls: unrecognized option '--x'": "arguments", "yaml: line 3: did not find": "configuration",
		`pods is forbidden: User "x" cannot list resource "pods"`: "role", "certificate has expired": "certificate", "cat: /etc/shop/settings.yaml: No such file or directory": "provide the file",
	} {
		wantSaid(t, said(t, crashing(words)), []string{want}, nil)
	}
	f := facts(with(v1.PodRunning, waiting("CrashLoopBackOff", ""), v1.ConditionFalse), func(p *v1.Pod) {
		p.Spec.Containers[0].Command = []string{"/bin/sleep 1000"}
		p.Status.ContainerStatuses[0].LastTerminationState = ended("StartError", 128, "fork/exec /bin/sleep 1000: no such file or directory")
	})
	wantSaid(t, said(t, f), []string{"item of its own"}, nil)
}

// A container that waits for its image says so while the sandbox is not there either.
func TestImageThatCannotBeHad_IsNotVolumesAndNetwork(t *testing.T) {
	f := facts(with(v1.PodPending, waiting("ErrImagePull", `image "nginx:1" cannot be run`), v1.ConditionFalse), func(p *v1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, condition(v1.PodReadyToStartContainers, v1.ConditionFalse, "", ""))
	})
	wantSaid(t, said(t, f), []string{`image "nginx:1" cannot be run`}, []string{"volumes and network"})
}

// Events are limited in number: a container that its liveness probe has killed before was not asked to stop by someone unknown.
func TestKillsWithoutEvents_AreThoseOfTheProbe(t *testing.T) {
	f := facts(with(v1.PodRunning, waiting("CrashLoopBackOff", ""), v1.ConditionFalse), func(p *v1.Pod) {
		p.Spec.Containers[0].LivenessProbe = httpProbe(80)
		p.Status.ContainerStatuses[0].RestartCount = 9
		p.Status.ContainerStatuses[0].LastTerminationState = ended("Error", 143, "")
	})
	wantSaid(t, said(t, f), []string{"check its liveness and startup probes"}, []string{"what asked it to stop"})
	f.Warnings = []explain.Warning{{Reason: "Unhealthy", Container: "db", Count: 6, Message: "Liveness probe failed: connection refused", Last: ago(8 * time.Minute)}}
	wantSaid(t, said(t, f), []string{"the node kills it when its liveness probe fails, as it did before: Liveness probe failed: connection refused · exit code 143", "listens on the port"}, []string{"what asked it to stop"})
	f.Pod.Status.ContainerStatuses[0].LastTerminationState = ended("Error", 3, "no such table") // which no probe causes
	wantSaid(t, said(t, f), []string{"exit code 3: no such table"}, []string{"iveness"})
}

// A probe that cannot be asked is neither a success nor a failure, and says why.
func TestProbeThatErrs_SaysWhy(t *testing.T) {
	f := facts(with(v1.PodRunning, running(time.Minute), v1.ConditionFalse), func(p *v1.Pod) {
		p.Spec.Containers[0].ReadinessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"/bin/check"}}}}
	})
	f.Containers = map[string]explain.Container{"db": {Readiness: &podstatus.Probe{}}}
	f.Warnings = []explain.Warning{{Reason: "Unhealthy", Container: "db", Last: ago(time.Second), Message: "Readiness probe errored and resulted in unknown state: fork/exec /bin/check: no such file or directory"}}
	wantSaid(t, said(t, f), []string{"no such file or directory", "install the command of the probe"}, nil)
}

// What the scheduler only counts is named, and what keeps the pod off most nodes leads.
func TestUnschedulable_NamesWhatTheSchedulerCounts(t *testing.T) {
	f := facts(func(p *v1.Pod) {
		p.Spec.NodeName, p.Spec.NodeSelector = "", map[string]string{"disk": "ssd"}
		p.Status.Conditions = []v1.PodCondition{condition(v1.PodScheduled, v1.ConditionFalse, "Unschedulable",
			"0/6 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector, 3 node(s) had untolerated taint(s). preemption: 0/6 nodes are available.")}
	})
	f.Taints = []string{"gpu=true:NoSchedule"}
	wantSaid(t, said(t, f), []string{"because 3 of 6 nodes have a taint that it does not tolerate (gpu=true:NoSchedule)", "ask for (disk=ssd)"}, nil)
	f.Pod.Status.Conditions, f.Absent = nil, []string{`ResourceClaim "gpu"`}
	wantSaid(t, said(t, f), []string{`because ResourceClaim "gpu" not found`, "create the claim"}, nil)
}

// A path that is called as a secret is no secret, and what follows it is the cause.
func TestPathOfASecret_IsNotRedacted(t *testing.T) {
	got := explain.LogLines([]byte("fork/exec /etc/passwd: permission denied\nlogin --password=hunter2 token: abcdefgh\n"))
	if got[0] != "fork/exec /etc/passwd: permission denied" || strings.Contains(got[1], "hunter2") || strings.Contains(got[1], "abcdefgh") {
		t.Errorf("got %q", got)
	}
}

// A kind of volume that the node does not support has nothing to do with a path of the node, which the message also names.
func TestUnsupportedVolume_IsNotAMissingPath(t *testing.T) {
	f := facts(with(v1.PodPending, waiting("CreateContainerConfigError", "spec.volumes[0].nfs: only emptyDir, hostPath, configMap and secret volumes are supported"), v1.ConditionFalse))
	wantSaid(t, said(t, f), []string{"spec.volumes[0].nfs", "use another node"}, []string{"create the path"})
}

// A pod that the node rejects for a host port says which ports it asks for, and how the pod that has one is found.
func TestHostPortInUse_NamesThePorts(t *testing.T) {
	f := facts(with(v1.PodFailed, v1.ContainerState{}, v1.ConditionFalse), func(p *v1.Pod) {
		p.Status.Reason, p.Status.Message = "NodePorts", "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
		p.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 8080}, {ContainerPort: 443, HostPort: 8443}}
	})
	wantSaid(t, said(t, f), []string{"has a host port that it asks for (it asks for 8080 and 8443)", "kubectl get pods -A -o wide --field-selector spec.nodeName="}, nil)
}

// The advice about an end is about what failed, not about a command that can be executed.
func TestAdviceByExitCode(t *testing.T) {
	for _, test := range []struct {
		code        int32
		words       string
		want, never string
	}{
		{126, "", "the file which the log names can be executed", "make the command executable"},
		{127, "", "the command that the log names, and PATH", "make the command executable"},
		{1, "exec /app/server: exec format error", "use an image for the node's architecture", "read the log"},
		{255, "exec /entrypoint.sh: no such file or directory", "the interpreter of its first line", "provide the file"},
		{134, "System.IO.FileNotFoundException: The file 'a.json' was not found", "provide the file", "name of the host"},
		{143, "", "find what asked it to stop", "make the command executable"},
		{0, "", "meant to end", "probe"},
	} {
		f := facts(with(v1.PodRunning, waiting("CrashLoopBackOff", ""), v1.ConditionFalse), func(p *v1.Pod) {
			p.Spec.Containers[0].Command = []string{"/bin/sh", "-c", "x"}
			p.Status.ContainerStatuses[0].LastTerminationState = ended("Error", test.code, test.words)
		})
		wantSaid(t, said(t, f), []string{test.want}, []string{test.never})
	}
}

// A program that ends with 0 when its liveness probe has it stopped was stopped by the probe.
func TestKilledByProbe_EndsWithZero(t *testing.T) {
	f := facts(with(v1.PodRunning, waiting("CrashLoopBackOff", ""), v1.ConditionFalse), func(p *v1.Pod) {
		p.Spec.Containers[0].LivenessProbe = httpProbe(80)
		p.Status.ContainerStatuses[0].RestartCount = 9
		p.Status.ContainerStatuses[0].LastTerminationState = ended("Completed", 0, "")
	})
	wantSaid(t, said(t, f), []string{"meant to end, and its liveness and startup probes"}, nil)
	f.Warnings = []explain.Warning{{Reason: "Unhealthy", Container: "db", Count: 6, Message: "Liveness probe failed: connection refused", Last: ago(21 * time.Second)}}
	wantSaid(t, said(t, f), []string{"the node has killed it: Liveness probe failed: connection refused · exit code 0", "listens on the port"}, []string{"meant to end"})
	f.Warnings[0].Count = 2 // fewer than it takes
	wantSaid(t, said(t, f), nil, []string{"has killed it"})
}

// The line that tells most is the one that names the failure, not one behind it that points to it.
func TestTellingLine_IsNoPointer(t *testing.T) {
	for words, want := range map[string]string{
		"bootstrap check failure [1]: vm.max_map_count [65530] is too low\nERROR: did not exit normally - check the logs at /var/log/x":                                       "exit code 1: bootstrap check failure",
		"Error: listen EADDRINUSE: address already in use\n    at Server\nEmitted 'error' event on Server instance at:":                                                       "exit code 1: Error: listen EADDRINUSE",
		"APPLICATION FAILED TO START\n\nDescription:\n\nFailed to configure a DataSource: 'url' attribute is not specified\n\nReason: Failed to determine a":                  "exit code 1: Failed to configure a DataSource",
		"ModuleNotFoundError: No module named 'flask_cors'\n[ERROR] Worker (pid:7) exited with code 3\n[ERROR] Shutting down: Master\n[ERROR] Reason: Worker failed to boot.": "exit code 1: ModuleNotFoundError",
		"[ERROR] Unable to lock ./ibdata1 error: 11\n[ERROR] Aborting":                                                                                                        "exit code 1: [ERROR] Unable to lock",
		"[ERROR] Aborting":                     "exit code 1: [ERROR] Aborting",
		"ERROR: something failed, see the log": "exit code 1: ERROR: something failed, see the log",
	} {
		wantSaid(t, said(t, crashing(words)), []string{want}, nil)
	}
}

// A probe that fails without a word is said to fail, and nothing more.
func TestProbeWithoutAnAnswer(t *testing.T) {
	f := facts(with(v1.PodRunning, running(time.Minute), v1.ConditionFalse), func(p *v1.Pod) {
		p.Spec.Containers[0].ReadinessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"check"}}}}
	})
	f.Containers = nil
	f.Warnings = []explain.Warning{{Reason: "Unhealthy", Container: "db", Last: ago(time.Second), Message: "Readiness probe failed: "}}
	wantSaid(t, said(t, f), []string{"its readiness probe (check) fails. Next"}, []string{"probe failed"})
}
