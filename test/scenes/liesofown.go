package scenes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/test/stock"
)

// meddler is the field manager of lies.
const meddler = "meddler"

type act = func(context.Context, *Stage) error

func deleting(names ...string) act {
	return func(ctx context.Context, s *Stage) error { return s.Delete(ctx, names...) }
}

// podStatus patches the status of a pod as another writer.
func podStatus(name, patch string) act { return podStatusAs(meddler, name, patch) }

// nodeStatus patches the status of the Node as another writer.
func nodeStatus(patch string) act {
	return func(ctx context.Context, s *Stage) error {
		_, err := s.Node.Admin().CoreV1().Nodes().Patch(ctx, s.Node.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: meddler}, "status")
		return err
	}
}

// podStatusAs patches the status of a pod under the name of a writer.
func podStatusAs(writer, name, patch string) act {
	return func(ctx context.Context, s *Stage) error {
		_, err := s.Node.Admin().CoreV1().Pods(metav1.NamespaceDefault).Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: writer}, "status")
		return err
	}
}

// written is a lie about a pod that another writer repeats; expect is empty if no side knows better.
func written(name, what, patch string, expect audit.Kind, why string) Lie {
	pod := "lie-" + strings.ToLower(strings.Fields(name)[0])
	return Lie{Name: name, What: what, Lasts: 75 * time.Second, Expect: expect, Why: why, Prepare: withPods(pod), Break: podStatus(pod, patch), Again: podStatus(pod, patch), Mend: deleting(pod)}
}

// replaced is a lie about one field of a pod whose list of containers a merge would replace as a whole.
func replaced(name, path, value string) Lie {
	lie := written(name, "replaced twice a second", "", audit.ForeignWriter, "")
	pod := "lie-" + strings.ToLower(strings.Fields(name)[0])
	lie.Break = func(ctx context.Context, s *Stage) error {
		_, err := s.Node.Admin().CoreV1().Pods(metav1.NamespaceDefault).Patch(ctx, pod, types.JSONPatchType, fmt.Appendf(nil, `[{"op": "replace", "path": %q, "value": %s}]`, path, value),
			metav1.PatchOptions{FieldManager: meddler}, "status")
		return err
	}
	lie.Again = lie.Break
	return lie
}

func nodeWritten(name, what, patch string, expect audit.Kind) Lie {
	return Lie{Name: name, What: what, Lasts: 75 * time.Second, Expect: expect, Break: nodeStatus(patch), Again: nodeStatus(patch)}
}

// Lies are lies and faults beside the scenes.
func Lies() []Lie {
	return []Lie{
		written("PodScheduled False", "patched twice a second", `{"status":{"conditions":[{"type":"PodScheduled","status":"False"}]}}`, audit.ForeignWriter, ""),
		written("startTime of last year", "patched twice a second", `{"status":{"startTime":"2020-01-01T00:00:00Z"}}`, audit.ForeignWriter, ""),
		written("lastState with a made-up exit", "patched twice a second",
			`{"status":{"containerStatuses":[{"name":"main","lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","startedAt":"2026-01-01T00:00:00Z","finishedAt":"2026-01-01T00:00:00Z"}}}]}}`, audit.ForeignWriter, ""),
		written("reason and message of a pod", "reason Evicted patched twice a second", `{"status":{"reason":"Evicted","message":"The node was low on resource: memory."}}`, audit.ForeignWriter, ""),
		nodeWritten("Node Ready False", "patched twice a second", `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Meddled"}]}}`, audit.ForeignWriter),
		nodeWritten("Node MemoryPressure True", "patched twice a second", `{"status":{"conditions":[{"type":"MemoryPressure","status":"True","reason":"Meddled"}]}}`, audit.ForeignWriter),
		nodeWritten("forged machine ID", "nodeInfo patched twice a second", `{"status":{"nodeInfo":{"machineID":"0123456789abcdef0123456789abcdef"}}}`, audit.ForeignWriter),
		nodeWritten("allocatable pods 500", "patched twice a second", `{"status":{"allocatable":{"pods":"500"}}}`, audit.ForeignWriter),
		leaseHolder(), leaseDeleted(), leaseDeletedFrozen(), stoppedContainer(), pausedContainer(), sandboxKilled(), containerRemoved(), removedBehindFrozen(),
		orphanedDirectory(), mirrorWithoutManifest(), heldByFinalizer(), podRecreated(), runtimeFrozen(), serverFrozen(), statusRefused(), leaseRefused(),
		nodeWritten("address of the Node", "InternalIP patched twice a second", `{"status":{"addresses":[{"type":"InternalIP","address":"203.0.113.9"}]}}`, audit.ForeignWriter),
		nodeWritten("port of the kubelet", "`daemonEndpoints` patched twice a second", `{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":9}}}}`, audit.ForeignWriter),
		nodeWritten("version of the kubelet", "nodeInfo patched twice a second", `{"status":{"nodeInfo":{"kubeletVersion":"v1.99.0"}}}`, audit.ForeignWriter),
		written("podIP of a pod in the network of the host", "patched twice a second", `{"status":{"podIP":"203.0.113.9","podIPs":[{"$patch":"replace"},{"ip":"203.0.113.9"}]}}`, audit.ForeignWriter, ""),
		forgedExit(), mutatedStatus(), leaseOfTheFuture(), deadButRenewed(), intruder(), intruderBehindFrozen(),
		replaced("restarts of a container: 99", "/status/containerStatuses/0/restartCount", "99"),
		replaced("imageid of another image", "/status/containerStatuses/0/imageID", `"example.com/evil@sha256:00"`),
		written("hostIP of another node", "patched twice a second", `{"status":{"hostIP":"203.0.113.9","hostIPs":[{"$patch":"replace"},{"ip":"203.0.113.9"}]}}`, audit.ForeignWriter, ""),
		flapping(),
		replaced("ready of a container: false", "/status/containerStatuses/0/ready", "false"),
		written("status wiped", "phase Pending, no containers, patched twice a second", `{"status":{"phase":"Pending","containerStatuses":null,"conditions":null}}`, audit.ForeignWriter, ""),
		written("PodReadyToStartContainers False", "patched twice a second", `{"status":{"conditions":[{"type":"PodReadyToStartContainers","status":"False"}]}}`, audit.ForeignWriter, ""),
		nodeWritten("images of the Node", "patched twice a second", `{"status":{"images":[{"names":["example.com/not-here:1"],"sizeBytes":1}]}}`, audit.ForeignWriter),
		nodeWritten("capacity of the Node", "cpu 999, patched twice a second", `{"status":{"capacity":{"cpu":"999"}}}`, audit.ForeignWriter),
		renewedLongAgo(), leaseOfASecond(), leaseDeletedAgain(), nodeDeleted(), kubeletReplaced(), runtimeSlow(), writesRefused(), maintained(), cloned(), runtimeLost(),
		written("removal of Ready", "condition Ready removed from a pod twice a second", `{"status":{"conditions":[{"type":"Ready","$patch":"delete"}]}}`, audit.ForeignWriter, ""),
		nodeWritten("Ready of the Node removed", "removed twice a second", `{"status":{"conditions":[{"type":"Ready","$patch":"delete"}]}}`, audit.ForeignWriter),
		asKubelet(), endedAsKubelet(), frozenByGroup(),
	}
}

func lease(ctx context.Context, s *Stage, patch string) error {
	_, err := s.Node.Admin().CoordinationV1().Leases(v1.NamespaceNodeLease).Patch(ctx, s.Node.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: meddler})
	return err
}

func deleteLease(ctx context.Context, s *Stage) error {
	return s.Node.Admin().CoordinationV1().Leases(v1.NamespaceNodeLease).Delete(ctx, s.Node.Name, metav1.DeleteOptions{})
}

func leaseHolder() Lie {
	return Lie{Name: "holder of the lease", What: "`holderIdentity` patched once", Lasts: time.Minute, Expect: audit.ForeignWriter,
		Break: func(ctx context.Context, s *Stage) error { return lease(ctx, s, `{"spec":{"holderIdentity":"thief"}}`) },
		Mend:  deleteLease}
}

func leaseDeleted() Lie {
	return Lie{Name: "lease deleted", What: "deleted once; the kubelet works", Lasts: 40 * time.Second, Why: "the kubelet creates it again within 10 s", Break: deleteLease}
}

func leaseDeletedFrozen() Lie {
	return Lie{Name: "lease of a frozen kubelet deleted", What: "SIGSTOP to the kubelet, then the lease is deleted", Halts: true, Lasts: 90 * time.Second, Expect: audit.LeaseStale,
		Break: func(ctx context.Context, s *Stage) error {
			if err := s.Node.Kubelet.Process().Pause(ctx); err != nil {
				return err
			}
			return deleteLease(ctx, s)
		},
		Mend: thaw}
}

func thaw(_ context.Context, s *Stage) error {
	s.Node.Kubelet.Process().Resume()
	return nil
}

// signal sends a signal to all processes of the container of a pod.
func (s *Stage) signal(ctx context.Context, pod string, sig unix.Signal) error {
	p, err := s.Pod(ctx, pod)
	if err != nil {
		return err
	}
	pids, err := s.Node.PIDs(p.Status.ContainerStatuses[0].ContainerID)
	for _, pid := range pids {
		err = errors.Join(err, unix.Kill(pid, sig))
	}
	return err
}

func stoppedContainer() Lie {
	return Lie{Name: "container stopped by a signal", What: "SIGSTOP to all processes of a container", Lasts: time.Minute, Expect: audit.FrozenContainer, Prepare: withPods("stopped"),
		Break: func(ctx context.Context, s *Stage) error { return s.signal(ctx, "stopped", unix.SIGSTOP) },
		Mend: func(ctx context.Context, s *Stage) error {
			return errors.Join(s.signal(ctx, "stopped", unix.SIGCONT), s.Delete(ctx, "stopped"))
		}}
}

// ctr runs a command of containerd about the container of a pod.
func (s *Stage) ctr(ctx context.Context, pod string, words ...string) error {
	p, err := s.Pod(ctx, pod)
	if err != nil {
		return err
	}
	return s.ctrID(ctx, strings.TrimPrefix(p.Status.ContainerStatuses[0].ContainerID, "containerd://"), words...)
}

func (s *Stage) ctrID(ctx context.Context, id string, words ...string) error {
	command := exec.CommandContext(ctx, "ctr", append([]string{"--address", s.Node.Containerd.Socket(), "--namespace", "k8s.io"}, append(words, id)...)...)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command.Args, " "), err, output)
	}
	return nil
}

func pausedContainer() Lie {
	return Lie{Name: "container paused by the runtime", What: "`ctr task pause`", Lasts: time.Minute, Expect: audit.FrozenContainer, Prepare: withPods("paused"),
		Break: func(ctx context.Context, s *Stage) error { return s.ctr(ctx, "paused", "task", "pause") },
		Mend: func(ctx context.Context, s *Stage) error {
			return errors.Join(s.ctr(ctx, "paused", "task", "resume"), s.Delete(ctx, "paused"))
		}}
}

func sandboxKilled() Lie {
	return Lie{Name: "sandbox killed", What: "SIGKILL to the sandbox of a pod; the kubelet works", Lasts: 40 * time.Second, Why: "the kubelet makes another one and starts the container again", Prepare: withPods("boxless"),
		Break: func(ctx context.Context, s *Stage) error {
			p, err := s.Pod(ctx, "boxless")
			if err != nil {
				return err
			}
			return s.killSandbox(ctx, string(p.UID))
		},
		Mend: deleting("boxless")}
}

// killSandbox ends the process of the sandbox of a pod: containerd lists it with the UID in its labels.
func (s *Stage) killSandbox(ctx context.Context, uid string) error {
	list, err := exec.CommandContext(ctx, "ctr", "--address", s.Node.Containerd.Socket(), "--namespace", "k8s.io", "containers", "ls", "-q",
		`labels."io.cri-containerd.kind"==sandbox,labels."io.kubernetes.pod.uid"==`+uid).Output()
	if err != nil {
		return err
	}
	for id := range strings.FieldsSeq(string(list)) {
		if err := s.Node.KillContainer(id); err != nil {
			return err
		}
	}
	return nil
}

func containerRemoved() Lie {
	return Lie{Name: "container removed", What: "SIGKILL, then `ctr task rm` and `ctr containers rm`; the kubelet works", Lasts: 40 * time.Second, Why: "the kubelet starts another one within seconds", Prepare: withPods("removed"),
		Break: func(ctx context.Context, s *Stage) error { return s.remove(ctx, "removed") }, Mend: deleting("removed")}
}

// remove takes the container of a pod from the runtime.
func (s *Stage) remove(ctx context.Context, pod string) error {
	p, err := s.Pod(ctx, pod)
	if err != nil {
		return err
	}
	id := strings.TrimPrefix(p.Status.ContainerStatuses[0].ContainerID, "containerd://")
	if err := s.Node.KillContainer(id); err != nil {
		return err
	}
	// The runtime may remove the task by itself.
	_ = s.ctrID(ctx, id, "task", "rm", "--force")
	return s.ctrID(ctx, id, "containers", "rm")
}

func removedBehindFrozen() Lie {
	return Lie{Name: "container removed behind a frozen kubelet", What: "SIGSTOP to the kubelet, then SIGKILL, `ctr task rm` and `ctr containers rm`; CRI keeps the container as exited", Halts: true, Lasts: time.Minute, Expect: audit.KubeletBehindRuntime, Prepare: withPods("vanished"),
		Break: func(ctx context.Context, s *Stage) error {
			if err := s.Node.Kubelet.Process().Pause(ctx); err != nil {
				return err
			}
			return s.remove(ctx, "vanished")
		},
		Mend: func(ctx context.Context, s *Stage) error {
			s.Node.Kubelet.Process().Resume()
			return s.Delete(ctx, "vanished")
		}}
}

func orphanedDirectory() Lie {
	const uid = "9d3f1c2a-0000-4000-8000-00000000dead"
	dir := func(s *Stage) string { return filepath.Join(s.Node.Kubelet.Root(), "pods", uid) }
	return Lie{Name: "directory of a pod that never was", What: "a directory with a volume that is not empty", Lasts: 4 * time.Minute, Expect: audit.OrphanedPodDirectory,
		Break: func(_ context.Context, s *Stage) error {
			volume := filepath.Join(dir(s), "volumes", "kubernetes.io~empty-dir", "data")
			if err := os.MkdirAll(volume, 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(volume, "file"), []byte("left"), 0o644)
		},
		Mend: func(_ context.Context, s *Stage) error { return os.RemoveAll(dir(s)) }}
}

const manifest = `apiVersion: v1
kind: Pod
metadata: {name: static, namespace: default}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: %s, imagePullPolicy: Never, command: [/bin/sh, -c, "%s"]}]
`

func mirrorWithoutManifest() Lie {
	file := func(s *Stage) string { return filepath.Join(s.Node.Manifests(), "static.yaml") }
	return Lie{Name: "manifest removed behind a frozen kubelet", What: "SIGSTOP to the kubelet, then the manifest of a static pod is removed", Halts: true, Lasts: 2 * time.Minute, Expect: audit.MirrorWithoutManifest,
		Prepare: func(ctx context.Context, s *Stage) error {
			if err := os.WriteFile(file(s), fmt.Appendf(nil, manifest, stock.Image, stock.Forever), 0o644); err != nil {
				return err
			}
			_, err := s.Node.AwaitPod(ctx, metav1.NamespaceDefault, "static-"+s.Node.Name, "running", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodRunning })
			return err
		},
		Break: func(ctx context.Context, s *Stage) error {
			if err := s.Node.Kubelet.Process().Pause(ctx); err != nil {
				return err
			}
			return os.Remove(file(s))
		},
		Mend: thaw}
}

func heldByFinalizer() Lie {
	return Lie{Name: "deleted by force with a finalizer", What: "a pod with a finalizer that is never removed, `kubectl delete --force`", Lasts: 4 * time.Minute, Expect: audit.StuckTerminating,
		Prepare: func(ctx context.Context, s *Stage) error {
			pod := s.Node.Pod("held", stock.Forever)
			pod.Finalizers = []string{"example.com/hold"}
			if _, err := s.Node.Create(ctx, pod); err != nil {
				return err
			}
			_, err := s.Node.AwaitPod(ctx, metav1.NamespaceDefault, "held", "running", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodRunning })
			return err
		},
		Break: deleting("held"),
		Mend: func(ctx context.Context, s *Stage) error {
			_, err := s.Node.Admin().CoreV1().Pods(metav1.NamespaceDefault).Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			return err
		}}
}

func podRecreated() Lie {
	return Lie{Name: "pod deleted by force and created again at once", What: "the same name with another UID, five times", Lasts: 30 * time.Second, Why: "nothing is untrue for longer than news takes", Prepare: withPods("again"),
		Break: func(ctx context.Context, s *Stage) error {
			for range 5 {
				if err := s.Delete(ctx, "again"); err != nil {
					return err
				}
				if err := s.Pods(ctx, "again"); err != nil {
					return err
				}
			}
			return nil
		},
		Mend: deleting("again")}
}

func runtimeFrozen() Lie {
	return Lie{Name: "containerd frozen", What: "SIGSTOP to containerd", Lasts: time.Minute, Silent: audit.SideRuntime, Prepare: withPods("stilled"),
		Break: func(ctx context.Context, s *Stage) error { return s.Node.Containerd.Process().Pause(ctx) },
		Mend: func(ctx context.Context, s *Stage) error {
			s.Node.Containerd.Process().Signal(syscall.SIGCONT)
			return s.Delete(ctx, "stilled")
		}}
}

func serverFrozen() Lie {
	return Lie{Name: "API server frozen", What: "SIGSTOP to the API server", Lasts: 75 * time.Second, Silent: audit.SideAPI,
		Break: func(_ context.Context, s *Stage) error { s.Node.API.Freeze(); return nil },
		Mend:  func(_ context.Context, s *Stage) error { s.Node.API.Thaw(); return nil }}
}

// refuse has a webhook that does not exist refuse the writes of a resource.
func refuse(group, resource string) act {
	return func(ctx context.Context, s *Stage) error {
		fail, none, scope, url := admissionv1.Fail, admissionv1.SideEffectClassNone, admissionv1.AllScopes, "https://127.0.0.1:1/"
		_, err := s.Node.Admin().AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "refuses.example.com"},
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "refuses.example.com", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"}, ClientConfig: admissionv1.WebhookClientConfig{URL: &url},
				Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.OperationAll},
					Rule: admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}, Scope: &scope}}},
			}},
		}, metav1.CreateOptions{})
		return err
	}
}

func accept(ctx context.Context, s *Stage) error {
	return ignoreNotFound(s.Node.Admin().AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, "refuses.example.com", metav1.DeleteOptions{}))
}

// settled is how long an API server takes to know a webhook.
const settled = 3 * time.Second

func statusRefused() Lie {
	return Lie{Name: "webhook refuses statuses of pods", What: "a webhook on `pods/status` that is down, then SIGKILL to a container", Lasts: 90 * time.Second, Expect: audit.UnreportedRestart, Prepare: withPods("refused"),
		Break: func(ctx context.Context, s *Stage) error {
			if err := refuse("", "pods/status")(ctx, s); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(settled):
			}
			return s.KillContainer(ctx, "refused")
		},
		Mend: func(ctx context.Context, s *Stage) error {
			if err := accept(ctx, s); err != nil {
				return err
			}
			return s.Delete(ctx, "refused")
		}}
}

func leaseRefused() Lie {
	return Lie{Name: "webhook refuses leases", What: "a webhook on `leases` that is down", Lasts: 2 * time.Minute, Expect: audit.LeaseStale, Break: refuse("coordination.k8s.io", "leases"), Mend: accept}
}

// forgedExit turns the failure of a pod into a success.
func forgedExit() Lie {
	patch := `{"status":{"containerStatuses":[{"name":"main","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]}}`
	return Lie{Name: "exit code of a pod that has failed", What: "exit code 3 overwritten with 0, twice a second", Lasts: 75 * time.Second, Expect: audit.ForeignWriter,
		Prepare: func(ctx context.Context, s *Stage) error {
			pod := s.Node.Pod("failed", "exit 3")
			pod.Spec.RestartPolicy = v1.RestartPolicyNever
			if _, err := s.Node.Create(ctx, pod); err != nil {
				return err
			}
			_, err := s.Node.AwaitPod(ctx, metav1.NamespaceDefault, "failed", "failed", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodFailed })
			return err
		},
		Break: podStatus("failed", patch), Again: podStatus("failed", patch), Mend: deleting("failed")}
}

// mutatedStatus has the API server change what the kubelet writes, under the kubelet's name.
func mutatedStatus() Lie {
	const name = "mutates.example.com"
	return Lie{Name: "an admission policy changes statuses on their way", What: "a MutatingAdmissionPolicy gives the container of a pod another ID in what the kubelet writes, then SIGKILL to the container",
		Lasts: 90 * time.Second, Expect: audit.KubeletBehindRuntime, Prepare: withPods("mutated"),
		Break: func(ctx context.Context, s *Stage) error {
			never := admissionv1.NeverReinvocationPolicy
			policies := s.Node.Admin().AdmissionregistrationV1()
			if _, err := policies.MutatingAdmissionPolicies().Create(ctx, &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: admissionv1.MutatingAdmissionPolicySpec{
					ReinvocationPolicy: never,
					MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Update}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/status"}}}}}},
					MatchConditions: []admissionv1.MatchCondition{{Name: "one", Expression: `object.metadata.name == "mutated" && size(object.status.containerStatuses) == 1`}},
					Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{
						Expression: `[JSONPatch{op: "replace", path: "/status/containerStatuses/0/containerID", value: "containerd://of-another-machine"}]`}}},
				}}, metav1.CreateOptions{}); err != nil {
				return err
			}
			if _, err := policies.MutatingAdmissionPolicyBindings().Create(ctx, &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name}}, metav1.CreateOptions{}); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(settled):
			}
			return s.KillContainer(ctx, "mutated")
		},
		Mend: func(ctx context.Context, s *Stage) error {
			policies := s.Node.Admin().AdmissionregistrationV1()
			return errors.Join(policies.MutatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{}), policies.MutatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{}),
				s.Delete(ctx, "mutated"))
		}}
}

func leaseOfTheFuture() Lie {
	return Lie{Name: "lease of a frozen kubelet renewed until 2099", What: "SIGSTOP to the kubelet, then `renewTime` patched once", Halts: true, Lasts: 2 * time.Minute, Expect: audit.LeaseStale,
		Break: func(ctx context.Context, s *Stage) error {
			if err := s.Node.Kubelet.Process().Pause(ctx); err != nil {
				return err
			}
			return lease(ctx, s, `{"spec":{"renewTime":"2099-01-01T00:00:00.000000Z"}}`)
		},
		Mend: thaw}
}

// deadButRenewed hides the end of a kubelet from the control plane.
func deadButRenewed() Lie {
	renew := func(ctx context.Context, s *Stage) error {
		if err := lease(ctx, s, fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))); err != nil {
			return err
		}
		return nodeStatus(fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339)))(ctx, s)
	}
	return Lie{Name: "lease and Ready of a frozen kubelet kept up by another", What: "SIGSTOP to the kubelet; lease and condition Ready True patched twice a second", Halts: true, Lasts: 90 * time.Second, Expect: audit.ForeignWriter,
		Break: func(ctx context.Context, s *Stage) error {
			if err := s.Node.Kubelet.Process().Pause(ctx); err != nil {
				return err
			}
			return renew(ctx, s)
		},
		Again: renew, Mend: thaw}
}
