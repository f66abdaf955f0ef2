// Package process is the runtime that needs nothing but a Linux machine: a container is
// a process group on it, and its image is always "host".
//
// Each container has a shim as its parent, a small process: the program statusd-shim if it
// is installed next to this one, and else this very program started with a hidden first
// argument. Shims outlive statusd:
//
//	statusd ──► shim ──► command ──► its descendants
//	   ▲         │
//	   ├─records─┤  durable; what the next statusd starts from
//	   ├─socket──┤  requests to stop, and what could not be recorded
//	   └─pidfd───┘  on which the kernel reports the end of the shim
//
// A shim starts the command in a session of its own, logs what it writes, stops it when
// asked to, kills whatever it leaves behind, records its exit durably, and ends. The
// runtime waits for all shims at once, without polling, and reads the records. After a
// crash of statusd the next one finds the records, checks that each shim is still the
// process that it was (number, start time and boot of the machine), connects to it, and
// waits for it as if it had started it. If a shim itself was killed, what is left of the
// container is killed, and its exit is ContainerStatusUnknown.
//
// # Disks that fail
//
// A stop needs no disk: it goes over the socket, and if there is none by signals. A start
// or an exit that cannot be recorded is reported over the socket; the shim stays until the
// exit is recorded, so that the next statusd hears of it as well. A container that has
// ended is never Running because a disk is full or read-only.
//
// Nothing in the state directory keeps [New] from succeeding. Records name their format
// and have a checksum. A pod or container whose records are damaged is ended and removed,
// one of a newer release is left alone, and a strange file is skipped. What is left of
// removed pods is deleted while Run runs, again and again if it cannot be deleted;
// what is mounted in it is unmounted, never deleted. [Runtime.Problems] lists all that.
//
// # What a container gets
//
// Command and args, with $(VAR) expanded, run in workingDir ("/" by default) as the
// user of statusd or as securityContext says. No shell is involved, and
// nothing is inherited from statusd's environment. The input is empty unless the spec has
// stdin; with tty the command has a terminal of its own, which is its controlling one. The container sees, in this order,
// later ones overriding earlier ones:
//
//	PATH, HOME, HOSTNAME       sane defaults; the name of the pod, or of the machine if
//	                           the pod asks for its network
//	KUBERNETES_SERVICE_HOST…   where the API server is, if there is one
//	STATUSD_TERMINATION_LOG    the file for the termination message, also where nothing is mounted
//	STATUSD_VOLUME_<NAME>      the directory of a volume that it mounts
//	STATUSD_MOUNT_<PATH>       what would be at a mount path, subPath included
//	envFrom of the spec        keys of config maps and secrets
//	env of the spec            values and all kinds of references but files
//	STATUSD_CONTAINER_ID       its own ID; every process of the container has it
//
// If the runtime may make mount namespaces, volumes are also at their mount paths, for the
// container alone. A path that the machine does not have is made in the view of the container; see
// internal/namespace. So are the termination log, at terminationMessagePath, and /etc/hosts and /etc/resolv.conf of pods with
// hostAliases or DNS settings. Commands that are executed in the container join its namespaces.
//
// NAME and PATH are in upper case, with _ for all that is no letter or digit:
// STATUSD_MOUNT_VAR_CACHE for /var/cache. $(STATUSD_MOUNT_VAR_CACHE) works in command,
// args and env.
//
// Volumes are emptyDir (a directory, or a tmpfs, that lives as long as the pod), hostPath (the path
// itself, checked against its type), and configMap, secret, downwardAPI and projected
// (directories whose files follow their objects; see package volume). The network is that
// of the machine: pods have its addresses, share its ports, and use its resolver, so that
// hostNetwork and all values of dnsPolicy but None make no difference. Requests count for scheduling.
// Limits of cpu and memory are those of a control group for each container; where none can
// be made, they are rejected.
//
// allowPrivilegeEscalation, capabilities and seccompProfile RuntimeDefault are applied to
// the thread that starts the command; see internal/confine. There is no isolation beyond
// that: a pod has to ask for the namespaces of the machine, unless
// Options.AllowPodsWithoutIsolation is set.
//
// The stop signal goes to the command alone, as in other runtimes; when the command
// ends, or the grace does, SIGKILL goes to all of its descendants. A command that has
// no handler for SIGTERM ends by it, where as process 1 of a container it would not.
//
// Everything that the runtime cannot do is rejected by Check with the name of the
// field.
//
// # Clients
//
// A command of ExecStream has a shim of its own:
//
//	statusd ──► shim of the command ──► command ──► its descendants
//	   └─ socket pair: its end is the end of the command
//
// The command gets what the container has: environment, working directory, user, groups, control
// groups, view of the machine and confinement. As subreaper the shim is an ancestor of all that
// the command starts. When the client goes, or statusd is killed, the shim kills all of it. When
// the command ends by itself, what it has left in the background stays in the container: its
// shim stays as well, and the marker in its environment makes all of it end with the container.
// A client that reads slowly makes the command wait; nothing is kept in memory for it.
//
// Attach goes through the socket attach.sock of the container's shim, which holds the streams and
// outlives statusd. The container waits for a client that reads slowly, as a program waits for
// its terminal, but not for one that has taken nothing for a second: that one is detached with
// [runtime.ErrTooSlow]. Up to 64 clients can be attached to a container, and each gets all of the
// output.
//
// Logs are read from their files. A reader that follows takes the successor of each file when a
// rotation has made one, so that it misses and repeats nothing unless all files that are kept
// were replaced since it last read. The last line of a container gets an end if it has none.
//
// PortForward connects to 127.0.0.1, or ::1 if nothing listens there: the ports of a pod are
// those of the machine.
//
// Stats are those of the control groups. Without them, or where the machine counts CPU time in
// a hierarchy of its own, they come from /proc: CPU time in steps of ten milliseconds, of
// all descendants of the shims, those that have ended included unless their parent ignored it.
//
// # What the machine must offer
//
// Linux 5.4 or newer. A service manager must leave the shims alone when it stops or
// restarts statusd: with systemd that is KillMode=process. Should a shim be killed
// together with the parent of a process that has also left its session and wiped its
// environment, that process cannot be found and stays.
//
// # State directory
//
//	lock                          held by the runtime that uses the directory
//	removing/                     what is being removed; emptied by Run
//	pods/<uid>/pod.json           the pod as it was started; written last
//	pods/<uid>/volumes/<name>/    emptyDir volumes, and those with contents
//	pods/<uid>/etc/               hosts and resolv.conf, if the pod has its own
//	pods/<uid>/containers/<id>/   one attempt of one container:
//	    spec.json                 what the shim runs, by the runtime, durable
//	    shim.json                 who the shim is, by the runtime
//	    started.json              who the command is and since when, by the shim
//	    control.sock              on which the shim takes requests and reports
//	    attach.sock               on which the shim takes clients of the container's streams
//	    stop.json                 the shortest grace asked for, if the socket was of no use
//	    exit.json                 how it ended, by the shim, durable
//	    termination-log           by the container
//	    logs/log, log.1, …        output, in the format of CRI, rotated by the shim
//	    shim.log                  the shim's own troubles; mostly empty
//
// Records are readable by statusd's user only. The directory of a pod can be passed, but not
// listed, by a group that the pod has for itself and that its containers have; what is on the way to
// volumes and termination-log inside of it is open, since containers may run as different users. For
// such containers the way to the state directory must be open too. A shim has the directory of its
// container as working directory, and only the container's ID as argument.
//
// # Goroutines
//
// New starts none. Run is one, which sleeps in the kernel, and starts one that deletes what
// is left of removed pods, one for each shim that was killed and one for each pod that has
// volumes with contents, and waits for them before it returns. Watch starts one that ends with
// its context. All logs that are followed share one, which ends with the last of them. ExecStream,
// Attach and PortForward start some that end before they return, and one that reads the client's
// input, which ends when that does. All methods may be called from any goroutine; Close comes last.
package process
