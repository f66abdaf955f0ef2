//go:build real

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	bankSecret = "hunter2-of-the-bank"
	cacheFile  = "known-only-by-a-list" // in the emptyDir of the victim
)

// prey is a pod of another namespace and user, and all that an attacker could know of it.
type prey struct {
	pod       *v1.Pod
	dir       string // of the pod
	container string // directory of its container
	pid, shim string // of its command, and of the parent of that
	group     string // that the pod has for itself
	queryAPI  string // HOST:PORT, which each local user can ask
}

// hostilePod is one that the level restricted admits. The attack is what its container does, or how the pod is made.
type hostilePod struct {
	name   string
	attack func(victim prey) string // a script
	change func(pod *v1.Pod, victim prey)
	waits  bool // the pod is not started
}

// mountEmpty mounts an emptyDir of the pod.
func mountEmpty(paths ...string) func(*v1.Pod, prey) {
	return func(pod *v1.Pod, _ prey) {
		c := &pod.Spec.Containers[0]
		for i, path := range paths {
			name := "over-" + strconv.Itoa(i)
			pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
			c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: name, MountPath: path})
		}
	}
}

// viaSubPath has an init container put a link into a volume and the container mount the link as a sub-path.
func viaSubPath(volume string) func(*v1.Pod, prey) {
	return func(pod *v1.Pod, victim prey) {
		c := &pod.Spec.Containers[0]
		setUp := *c.DeepCopy()
		setUp.Name, setUp.Ports = "set-up", nil
		setUp.VolumeMounts = []v1.VolumeMount{{Name: volume, MountPath: "/own"}}
		setUp.Command = []string{"/bin/sh", "-c", fmt.Sprintf("chmod u+w $STATUSD_MOUNT_OWN; ln -s %s/volumes/creds $STATUSD_MOUNT_OWN/evil; true", victim.dir)}
		pod.Spec.InitContainers = []v1.Container{setUp}
		c.VolumeMounts = []v1.VolumeMount{{Name: volume, MountPath: "/evil", SubPath: "evil"}}
	}
}

var hostilePods = []hostilePod{
	{name: "secret-by-path", attack: func(v prey) string { return "cat " + v.dir + "/volumes/creds/password" }},
	{name: "secret-by-process", attack: func(v prey) string { return "cat /proc/" + v.pid + "/root/etc/creds/password" }},
	{name: "environment", attack: func(v prey) string { return "cat /proc/" + v.pid + "/environ" }},
	{name: "record", attack: func(v prey) string { return "cat " + v.container + "/spec.json" }},
	{name: "log", attack: func(v prey) string { return "cat " + v.container + "/logs/log" }},
	{name: "log-by-query-api", attack: func(v prey) string {
		host, port, _ := strings.Cut(v.queryAPI, ":")
		return fmt.Sprintf(`for at in /log?container=main /yaml ""; do bash -c 'exec 3<>/dev/tcp/%s/%s; printf "GET /apis/v1/pods/%s/%s$0 HTTP/1.0\r\nHost: localhost\r\n\r\n" >&3; cat <&3' "$at"; done`, host, port, v.pod.Namespace, v.pod.Name)
	}},
	{name: "empty-dir", attack: func(v prey) string {
		return "echo pwned > " + v.dir + "/volumes/work/run.sh; ls " + v.dir + "/volumes/work"
	}},
	{name: "termination-log", attack: func(v prey) string { return "echo spoofed > " + v.container + "/termination-log" }},
	{name: "signal", attack: func(v prey) string { return "kill -9 " + v.pid }},
	{name: "link-in-config-map", attack: func(prey) string { return "cat /evil/password" }, change: viaSubPath("settings"), waits: true},
	{name: "link-in-empty-dir", attack: func(prey) string { return "cat /evil/password" }, change: viaSubPath("work"), waits: true},
	{name: "group", waits: true, attack: func(v prey) string { return "cat " + v.dir + "/volumes/creds/password" }, change: func(pod *v1.Pod, v prey) {
		group, _ := strconv.ParseInt(v.group, 10, 64)
		pod.Spec.SecurityContext.SupplementalGroups = []int64{group}
	}},
	{name: "run", attack: func(prey) string { return "true" }, change: func(pod *v1.Pod, v prey) {
		c := &pod.Spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: "settings", MountPath: "/run/statusd-" + string(v.pod.UID), SubPath: "greeting"})
	}},

	// statusd, which is root, reads the message of a container that has ended.
	{name: "termination-log-link", attack: func(v prey) string {
		return "rm -f $STATUSD_TERMINATION_LOG; ln -sf " + v.dir + "/volumes/creds/password $STATUSD_TERMINATION_LOG; cat $STATUSD_TERMINATION_LOG"
	}},
	{name: "descriptors-of-processes", attack: func(v prey) string {
		return fmt.Sprintf("cat /proc/%s/fd/* /proc/%s/cwd/* /proc/%s/map_files/*; for p in %s $PPID; do cat /proc/$p/fd/* /proc/$p/cwd/spec.json /proc/$p/environ; done", v.pid, v.pid, v.pid, v.shim)
	}},
	{name: "signals-to-shims", attack: func(v prey) string {
		return fmt.Sprintf("for p in %s $PPID; do kill -STOP $p; kill -TERM $p; kill -9 $p; done", v.shim)
	}},
	{name: "program-of-the-shim", attack: func(v prey) string {
		return fmt.Sprintf("for p in %s $PPID; do echo pwned > /proc/$p/exe; echo 1000 > /proc/$p/oom_score_adj; done", v.shim)
	}},
	{name: "set-user-id", attack: func(v prey) string {
		return fmt.Sprintf("w=$STATUSD_MOUNT_WORK; cp /bin/cat $w/cat; chmod 6755 $w/cat; chown root $w/cat; $w/cat %s/volumes/creds/password; su root -c 'cat %s/volumes/creds/password' < /dev/null", v.dir, v.dir)
	}},
	{name: "hard-links", attack: func(v prey) string {
		return fmt.Sprintf("for f in volumes/creds/password volumes/work/run.sh; do ln %s/$f $STATUSD_MOUNT_WORK/${f##*/}; cat $STATUSD_MOUNT_WORK/${f##*/}; done", v.dir)
	}},
	// What statusd and its shims open by a well-known path is the pod's own here.
	{name: "over-proc-and-dev", attack: func(v prey) string {
		return fmt.Sprintf("for l in null ptmx tty; do ln -s %s/volumes/creds/password /dev/$l; done; mkdir -p /proc/self/fd; ln -s %s /proc/self/cwd; cat /dev/ptmx", v.dir, v.dir)
	}, change: mountEmpty("/proc", "/dev")},
	{name: "over-the-state", attack: func(v prey) string {
		return fmt.Sprintf("cat %s/volumes/creds/password; mkdir -p %s/volumes/work; echo pwned > %s/volumes/work/run.sh", v.dir, v.dir, v.dir)
	}, change: func(pod *v1.Pod, v prey) { mountEmpty(filepath.Dir(v.dir))(pod, v) }},
	{name: "sub-path-by-variable", waits: true, attack: func(prey) string { return "cat /evil/password" }, change: func(pod *v1.Pod, v prey) {
		c := &pod.Spec.Containers[0]
		c.Env = append(c.Env, v1.EnvVar{Name: "WHERE", Value: "../../../" + string(v.pod.UID) + "/volumes/creds"})
		c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: "work", MountPath: "/evil", SubPathExpr: "$(WHERE)"})
	}},
	{name: "odd-names", attack: func(v prey) string { return "cat '/o dd\n\"$(id)/'*; touch '/o dd\n\"$(id)/file'" }, change: func(pod *v1.Pod, v prey) {
		c := &pod.Spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: "work", MountPath: "/o dd\n\"$(id)", SubPath: "..x/ \n;`id`"})
	}},
	{name: "deep-tree", attack: func(prey) string {
		return "cd $STATUSD_MOUNT_WORK; ln -s . loop; mkfifo fifo; i=0; while [ $i -lt 190 ] && mkdir ddddddddddddddddddd && cd ddddddddddddddddddd; do i=$((i+1)); done; mkdir ..data; chmod 0 ..data"
	}},
	{name: "huge-line", attack: func(prey) string { return "head -c 30000000 /dev/zero | tr '\\0' x" }},
	{name: "processes-that-stay", attack: func(v prey) string {
		return "i=0; while [ $i -lt 100 ]; do setsid sh -c 'trap \"\" TERM HUP; exec sleep " + v.staying() + "' & i=$((i+1)); done; sleep 0.1"
	}},
}

// staying is how long processes of a hostile pod sleep that are to outlive it, which names them.
func (v prey) staying() string { return "1000000." + v.pid }

// Pods that Pod Security admits as restricted, each with an attack of its own on a pod of another namespace and user, on a
// real API server: none reads what is not its own, and each effect on the victim or the machine is missing.
func TestHostilePodsOfARestrictedNamespace_GetNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test needs root: other users are what separates pods")
	}
	server := shared.Server(t)
	d := newDaemon(t, "hostile").join(server)
	openTheWay(t, filepath.Dir(d.config.StateDir))
	d.start()

	bank, thieves := server.Namespace(t), server.Namespace(t)
	restricted(t, server, bank)
	restricted(t, server, thieves)
	createObjects(t, server, bank)
	createObjects(t, server, thieves)
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "creds"}, StringData: map[string]string{"password": bankSecret}}
	if _, err := server.Admin().CoreV1().Secrets(bank).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ofBank := follow(t, server.Admin(), bank)
	victim := restrictedPod(bank, "victim", "hostile", "echo "+bankSecret+"; echo original > $STATUSD_MOUNT_WORK/run.sh; touch $STATUSD_MOUNT_WORK/"+cacheFile+"; echo $$$$ > $STATUSD_MOUNT_WORK/pid; exec sleep 100000")
	victim.Spec.SecurityContext.RunAsUser = ptr(int64(1501))
	victim.Spec.Volumes = append(victim.Spec.Volumes, v1.Volume{Name: "creds", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "creds"}}})
	c := &victim.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: "creds", MountPath: "/etc/creds"})
	c.Env = []v1.EnvVar{{Name: "PASSWORD", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "creds"}, Key: "password"}}}}
	server.CreatePod(t, victim)
	ofBank.await("victim", "that it is ready", isReady)
	v := preyOf(t, d, server.GetPod(t, bank, "victim"))

	ofThieves := follow(t, server.Admin(), thieves)
	for _, hostile := range hostilePods {
		pod := restrictedPod(thieves, hostile.name, "hostile", "echo tried; "+hostile.attack(v)+"; true")
		pod.Spec.SecurityContext.RunAsUser = ptr(int64(1999))
		if hostile.change != nil {
			hostile.change(pod, v)
		}
		server.CreatePod(t, pod) // admission takes it
	}
	for _, hostile := range hostilePods {
		ofThieves.await(hostile.name, "that it has tried, or may not start", func(_ watch.EventType, pod *v1.Pod) bool { return hasTried(pod) })
		dir := d.podDirectory(server.GetPod(t, thieves, hostile.name))
		if said := everyLog(t, dir); strings.Contains(said, bankSecret) || strings.Contains(said, cacheFile) {
			t.Errorf("%s: the pod got at what is another's:\n%s", hostile.name, said)
		} else if tried := strings.Contains(said, "tried"); tried == hostile.waits {
			t.Errorf("%s: the attack was tried: %t, want %t:\n%s", hostile.name, tried, !hostile.waits, said[:min(len(said), 4096)])
		}
		if size, most := logSize(t, dir), d.config.ContainerLogs.MaxBytes*6; size > most {
			t.Errorf("%s: its logs take %d bytes, want at most %d", hostile.name, size, most)
		}
		status, err := json.Marshal(server.GetPod(t, thieves, hostile.name).Status)
		if err != nil || strings.Contains(string(status), bankSecret) {
			t.Errorf("%s: the status in the API has what is another's (%v): %s", hostile.name, err, status)
		}
	}
	for _, hostile := range hostilePods {
		if err := server.Admin().CoreV1().Pods(thieves).Delete(t.Context(), hostile.name, metav1.DeleteOptions{GracePeriodSeconds: ptr(int64(1))}); err != nil {
			t.Error(err)
		}
	}
	for _, hostile := range hostilePods {
		ofThieves.await(hostile.name, "that it is gone", isDeleted)
	}
	until(t, "nothing of the hostile pods is left on the machine", func() bool {
		left, err := filepath.Glob(filepath.Dir(v.dir) + "/*")
		return err == nil && len(left) == 1 && !running(t, "sleep "+v.staying())
	})

	for file, want := range map[string]string{v.dir + "/volumes/work/run.sh": "original\n", v.container + "/termination-log": ""} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s of the victim: got %q, %v; want %q", filepath.Base(file), got, err, want)
		}
	}
	if exists("/run/statusd-" + string(v.pod.UID)) {
		t.Error("a mount path was made on the machine")
	}
	now := server.GetPod(t, bank, "victim").Status.ContainerStatuses[0]
	if now.State.Running == nil || now.RestartCount > 0 {
		t.Errorf("the victim does not run any more: %+v", now)
	}
	d.stop()
}

func preyOf(t *testing.T, d *daemon, pod *v1.Pod) prey {
	t.Helper()
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	v := prey{pod: pod, dir: d.podDirectory(pod), queryAPI: d.config.HealthzBindAddress}
	v.container = filepath.Join(v.dir, "containers", id)
	var pid []byte
	until(t, "the victim has written its number", func() bool {
		pid, _ = os.ReadFile(v.dir + "/volumes/work/pid")
		return len(pid) > 0
	})
	v.pid = strings.TrimSpace(string(pid))
	stat, err := os.ReadFile("/proc/" + v.pid + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	v.shim = strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[1]
	status, err := os.ReadFile("/proc/" + v.pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if groups, ok := strings.CutPrefix(line, "Groups:"); ok {
			for _, group := range strings.Fields(groups) {
				v.group = group // the groups of pods are the highest
			}
		}
	}
	if !strings.HasPrefix(v.group, "19") || !exists(v.container+"/spec.json") || !exists(v.dir+"/volumes/creds/password") {
		t.Fatalf("the attacks would miss the victim: group %q, container %s", v.group, v.container)
	}
	return v
}

// hasTried reports whether a pod has ended, or waits for more than its start.
func hasTried(pod *v1.Pod) bool {
	if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		return true
	}
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return true
		}
	}
	return false
}

// everyLog is all that the containers of a pod have written.
func everyLog(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(dir + "/containers/*/logs/*")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(content)
	}
	return all.String()
}

// logSize is how much disk the logs of a pod take.
func logSize(t *testing.T, dir string) (size int64) {
	t.Helper()
	files, err := filepath.Glob(dir + "/containers/*/logs/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return size
}
