//go:build real

package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// hostileArgument makes this program attack another pod.
const hostileArgument = "hostile"

func init() { programs[hostileArgument] = hostileMain }

// target is all that a thief could know of the machine and of the pod that it attacks.
type target struct {
	State     string // directory of the runtime
	Pod       string // directory of the pod
	Container string // directory of its container
	Main      int    // process numbers of the command and of its shim
	Shim      int
	Cgroup    string
	Secret    string // mount path of the secret
	Own       string // directory that the thief can write to, and where it is on the machine
	OwnPath   string
}

// attacks are what a hostile container tries. An attack without an error has succeeded.
var attacks = []struct {
	name string
	try  func(t target) error
}{
	{"read a secret by its path", func(t target) error { return read(t.Pod + "/volumes/creds/greeting") }},
	{"list an emptyDir", func(t target) error { return list(t.Pod + "/volumes/cache") }},
	{"write to an emptyDir", func(t target) error { return overwrite(t.Pod+"/volumes/cache/run.sh", os.O_CREATE) }},
	{"overwrite a termination log", func(t target) error { return overwrite(t.Container+"/termination-log", 0) }},
	{"link a termination log", func(t target) error { return os.Link(t.Container+"/termination-log", t.OwnPath+"/log") }},
	{"list pods", func(t target) error { return list(t.State + "/pods") }},
	{"list containers", func(t target) error { return list(t.Pod + "/containers") }},
	{"list what is removed", func(t target) error { return list(t.State + "/removing") }},
	{"take the lock", func(t target) error { return overwrite(t.State+"/lock", 0) }},
	{"read a record", func(t target) error { return read(t.Container + "/spec.json") }},
	{"read a log", func(t target) error { return read(t.Container + "/logs/log") }},
	{"connect to a shim", func(t target) error { return connect(t.Container + "/control.sock") }},
	{"attach to a container", func(t target) error { return connect(t.Container + "/attach.sock") }},
	{"read through the root directory of a process", func(t target) error { return read(ofProcess(t.Main, "root") + t.Secret + "/greeting") }},
	{"list the working directory of a process", func(t target) error { return list(ofProcess(t.Main, "cwd")) }},
	{"list the descriptors of a process", func(t target) error { return list(ofProcess(t.Main, "fd")) }},
	{"read the environment of a process", func(t target) error { return read(ofProcess(t.Main, "environ")) }},
	{"open the namespace of a process", func(t target) error { return read(ofProcess(t.Main, "ns/mnt")) }},
	{"find the directory of a shim", func(t target) error { _, err := os.Readlink(ofProcess(t.Shim, "cwd")); return err }},
	{"read the environment of a shim", func(t target) error { return read(ofProcess(t.Shim, "environ")) }},
	{"signal a process", func(t target) error { return unix.Kill(t.Main, unix.SIGCONT) }},
	{"signal a shim", func(t target) error { return unix.Kill(t.Shim, unix.SIGUSR1) }},
	{"trace a process", trace},
	{"read the memory of a process", readMemory},
	{"take a descriptor of a process", takeDescriptor},
	{"join a control group", func(t target) error { return overwrite(t.Cgroup+"/cgroup.procs", 0) }},
	{"make a device", func(t target) error { return unix.Mknod(t.Own+"/disk", unix.S_IFBLK|0o600, 7<<8) }},
	{"give a file to root", func(t target) error {
		return errors.Join(os.WriteFile(t.Own+"/setuid", nil, 0o755), os.Chown(t.Own+"/setuid", 0, 0))
	}},
	{"mount", func(t target) error { return unix.Mount("none", t.Own, "tmpfs", 0, "") }},
	{"make a user namespace", func(target) error {
		command := exec.Command("/bin/true")
		command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
		return command.Run()
	}},
}

// Attacks that must not succeed for root either.
var closedToAll = []struct {
	name string
	try  func(t target) error
}{
	{"find a path in arguments", findPath},
	{"inherit a descriptor", inherited},
}

func ofProcess(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

func read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if strings.Contains(path, "/ns/") {
		return nil // nothing to read there
	}
	_, err = file.Read(make([]byte, 1))
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func list(path string) error {
	_, err := os.ReadDir(path)
	return err
}

func overwrite(path string, flags int) error {
	file, err := os.OpenFile(path, os.O_WRONLY|flags, 0o777)
	if err != nil {
		return err
	}
	return file.Close()
}

func connect(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Chdir(filepath.Dir(path)); err != nil { // a name of a socket must be short
		return err
	}
	return unix.Connect(fd, &unix.SockaddrUnix{Name: filepath.Base(path)})
}

func trace(t target) error {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	if err := unix.PtraceSeize(t.Main); err != nil {
		return err
	}
	return errors.Join(unix.PtraceInterrupt(t.Main), waitStopped(t.Main), unix.PtraceDetach(t.Main))
}

func waitStopped(pid int) error {
	_, err := unix.Wait4(pid, nil, unix.WALL, nil)
	return err
}

func readMemory(t target) error {
	buffer := make([]byte, 1)
	local := []unix.Iovec{{Base: &buffer[0], Len: 1}}
	_, err := unix.ProcessVMReadv(t.Main, local, []unix.RemoteIovec{{Base: 0, Len: 1}}, 0)
	if errors.Is(err, unix.EFAULT) { // nothing is at that address, which one has to be allowed to learn
		return nil
	}
	return err
}

func takeDescriptor(t target) error {
	process, err := unix.PidfdOpen(t.Main, 0)
	if err != nil {
		return err
	}
	defer unix.Close(process)
	fd, err := unix.PidfdGetfd(process, 1, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

var errNone = errors.New("none")

func findPath(t target) error {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, line := range lines {
		if text, err := os.ReadFile(line); err == nil && strings.Contains(string(text), t.State) {
			return nil
		}
	}
	return errNone
}

func inherited(target) error {
	// A descriptor that this process was started with is one that its children have.
	output, err := exec.Command("/bin/sh", "-c", "for fd in /proc/$$/fd/*; do [ ${fd##*/} -le 2 ] || readlink $fd || true; done").Output()
	if err != nil {
		return err
	}
	if len(output) > 0 {
		return nil
	}
	return errNone
}

// hostileMain tries all attacks and writes a line with the names of those that succeeded to a pipe.
func hostileMain(arguments []string) int {
	var t target
	data, err := os.ReadFile(arguments[0])
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	won := []string{}
	for _, attack := range append(attacks, closedToAll...) {
		if err := attack.try(t); err == nil {
			won = append(won, attack.name)
		} else {
			fmt.Println(attack.name, err)
		}
	}
	if err := os.WriteFile(arguments[1], []byte(strings.Join(won, ", ")+"\n"), 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}

// restricted makes a pod one of the strictest level, with a user.
func restricted(pod *v1.Pod, uid int64) *v1.Pod {
	pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsNonRoot: ptr(true), RunAsUser: &uid,
		SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault}}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			list[i].SecurityContext = &v1.SecurityContext{
				AllowPrivilegeEscalation: ptr(false), Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}},
			}
		}
	}
	return pod
}

func mountAt(pod *v1.Pod, name, path string) {
	container0(pod).VolumeMounts = append(container0(pod).VolumeMounts, v1.VolumeMount{Name: name, MountPath: path})
}

func addEmptyDir(pod *v1.Pod, name, path string) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
	mountAt(pod, name, path)
}

func addSettings(pod *v1.Pod, name, path string) {
	source := &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}
	pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{ConfigMap: source}})
	mountAt(pod, name, path)
}

// newVictim starts a pod of two users without an fsGroup and returns all that there is to know of it.
func newVictim(t *testing.T, h *host) target {
	t.Helper()
	const secret = "/run/statusd-test-victim/creds"
	script := `cat ` + secret + `/greeting > ` + h.pipe + `; echo > ` + h.pipe + `; cd $STATUSD_MOUNT_RUN_STATUSD_TEST_VICTIM_CACHE && echo mine > $$ && echo $$ > ` + h.pipe + `; exec sleep 1000000`
	pod := restricted(scriptPod("victim", script), 1501)
	addSettings(pod, "creds", secret)
	addEmptyDir(pod, "cache", "/run/statusd-test-victim/cache")
	second := container0(pod).DeepCopy()
	second.Name, second.SecurityContext.RunAsUser = "second", ptr(int64(1502))
	pod.Spec.Containers = append(pod.Spec.Containers, *second)
	id := h.start(t, pod)
	var pids []int
	for i := range pod.Spec.Containers {
		if i > 0 {
			if _, err := h.StartContainer(t.Context(), pod, &pod.Spec.Containers[i], 0); err != nil {
				t.Fatal(err)
			}
		}
		if got := h.hear(t); got != "hello" {
			t.Fatalf("container %d reads %q from its volume", i, got)
		}
		pids = append(pids, h.hearPID(t).PID)
	}
	h.Runtime.mu.Lock()
	defer h.Runtime.mu.Unlock()
	c, err := h.find(id)
	if err != nil {
		t.Fatal(err)
	}
	dir := h.podDir("victim")
	return target{
		State: h.dir, Pod: string(dir), Container: string(dir.container(id).Dir), Main: pids[0], Shim: h.shimOf(t, "victim", id).PID,
		Cgroup: c.spec.Cgroup[0], Secret: secret,
	}
}

// attack lets a pod try all attacks, and returns which succeeded.
func attack(t *testing.T, h *host, pod *v1.Pod, victim target) string {
	t.Helper()
	dir := t.TempDir()
	openTheWay(t, dir)
	program, knowledge := filepath.Join(dir, "program"), filepath.Join(dir, "target.json")
	addEmptyDir(pod, "own", "/run/statusd-test-own")
	victim.Own, victim.OwnPath = "/run/statusd-test-own", h.podDir(pod.UID).volume("own")
	data, err := json.Marshal(victim)
	self, openErr := os.ReadFile(os.Args[0])
	if err := errors.Join(err, openErr, os.WriteFile(knowledge, data, 0o644), os.WriteFile(program, self, 0o755)); err != nil {
		t.Fatal(err)
	}
	container0(pod).Command = []string{program, hostileArgument, knowledge, h.pipe}
	h.start(t, pod)
	return h.hear(t)
}

func hostileHost(t *testing.T) *host {
	h := newHost(t)
	h.options.Objects = settings("hello")
	h.options.CgroupParent = fmt.Sprintf("/statusd-test-%d", os.Getpid())
	openViewed(t, h)
	return h
}

// A pod of another user gets nothing of a pod, whatever it knows of it.
func TestHostilePod_GetsNothingOfAnotherPod(t *testing.T) {
	h := hostileHost(t)
	victim := newVictim(t, h)
	if won := attack(t, h, restricted(scriptPod("thief", ""), 1999), victim); won != "" {
		t.Errorf("a restricted pod could: %s", won)
	}
	// What root can do shows that the attacks are real ones.
	won := attack(t, h, scriptPod("root", ""), victim)
	for _, attack := range attacks {
		if !strings.Contains(won, attack.name) {
			t.Errorf("root could not %s: the attack proves nothing", attack.name)
		}
	}
	for _, attack := range closedToAll {
		if strings.Contains(won, attack.name) {
			t.Errorf("root could %s", attack.name)
		}
	}
}

// The group of a pod cannot be asked for, in any of the ways to get a group.
func TestHostilePod_CannotAskForTheGroupOfAnother(t *testing.T) {
	h := hostileHost(t)
	newVictim(t, h)
	group := int64(h.pods["victim"].group)
	for name, ask := range map[string]func(*v1.PodSecurityContext){
		"runAsUser":          func(c *v1.PodSecurityContext) { c.RunAsUser = &group },
		"runAsGroup":         func(c *v1.PodSecurityContext) { c.RunAsGroup = &group },
		"fsGroup":            func(c *v1.PodSecurityContext) { c.FSGroup = &group },
		"supplementalGroups": func(c *v1.PodSecurityContext) { c.SupplementalGroups = []int64{group} },
	} {
		pod := restricted(scriptPod("thief-"+types.UID(name), "true"), 1999)
		ask(pod.Spec.SecurityContext)
		if err := h.StartPod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if _, err := h.StartContainer(t.Context(), pod, container0(pod), 0); !errors.Is(err, errPodGroup) {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
}
