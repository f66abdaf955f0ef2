// Package process is the runtime that needs nothing but a Linux machine: a container is
// a process group on it, and its image is always "host".
//
// Each container has a shim as its parent, a small process: the program statusd-shim if it is
// installed next to statusd, else statusd itself started with a hidden first argument. Shims
// outlive statusd:
//
//	statusd ──► shim ──► command ──► its descendants
//	   ▲         │
//	   ├─records─┤  durable; state for the next statusd
//	   ├─socket──┤  requests to stop, and events that could not be recorded
//	   └─pidfd───┘  on which the kernel reports the end of the shim
//
// A shim starts the command in a new session, logs its output, stops it on request, kills the
// processes that the command leaves behind, records the exit durably, and ends. The runtime waits
// for all shims at once, without polling, and reads the records. After a crash of statusd, the next
// statusd finds the records, checks the identity of each shim (PID, start time and boot ID),
// connects to the shim, and waits for its end. If a shim itself was killed, the remaining processes
// of the container are killed, and its exit is ContainerStatusUnknown.
//
// # Disks that fail
//
// A stop needs no disk: the request goes over the socket, or by signals if the socket is gone. A
// start or an exit that cannot be recorded is reported over the socket; the shim stays until the
// exit is recorded, so that the exit is not lost when statusd restarts. A full or read-only disk
// never keeps a container that has ended in state Running.
//
// [New] succeeds whatever the state directory contains. Records have a format version and a
// checksum. Pods and containers with damaged records are killed and removed, pods and containers of
// a newer release are not touched, and unknown files are skipped. Run deletes the remains of
// removed pods, and retries if they cannot be deleted; mounts in them are unmounted, their contents
// never deleted. [Runtime.Problems] lists all these cases.
//
// # What a container gets
//
// Command and args, with $(VAR) expanded, run in workingDir ("/" by default) as the
// user of statusd or as securityContext says. No shell is involved, and nothing is inherited from statusd's environment.
// The input is empty unless the spec has stdin; with tty the command has a controlling terminal. The environment consists
// of these variables, later entries overriding earlier entries:
//
//	PATH, HOME, HOSTNAME       sane defaults; the name of the pod, or of the machine if
//	                           the pod asks for its network
//	KUBERNETES_SERVICE_HOST…   where the API server is, if there is one
//	STATUSD_TERMINATION_LOG    the file for the termination message, also where nothing is mounted
//	STATUSD_VOLUME_<NAME>      the directory of a volume that it mounts
//	STATUSD_MOUNT_<PATH>       the source of a mount path, subPath included
//	envFrom of the spec        keys of config maps and secrets
//	env of the spec            values and all kinds of references but files
//	STATUSD_CONTAINER_ID       its own ID; every process of the container has it
//
// If the runtime may create mount namespaces, volumes are also mounted at their mount paths, for the container alone. The
// same holds for the termination log, at terminationMessagePath, and for /etc/hosts and /etc/resolv.conf of pods with
// hostAliases or DNS settings. A path that the machine does not have is created in the mount namespace of the container; see
// internal/namespace. Commands that are executed in the container join its namespaces.
//
// NAME and PATH are in upper case, with _ for each character that is not a letter or digit:
// STATUSD_MOUNT_VAR_CACHE for /var/cache. $(STATUSD_MOUNT_VAR_CACHE) works in command, args and
// env.
//
// Volumes are emptyDir (a directory, or a tmpfs, that lives as long as the pod), hostPath (the path
// itself, checked against its type), and configMap, secret, downwardAPI and projected (directories
// whose files follow their objects; see package volume). Pods use the network of the machine: its
// addresses, ports and resolver, so that hostNetwork and all values of dnsPolicy but None make no
// difference. Requests count for scheduling. Limits of cpu and memory are enforced by a cgroup for
// each container; where no cgroup can be created, limits are rejected.
//
// allowPrivilegeEscalation, capabilities and seccompProfile RuntimeDefault are applied to the
// thread that starts the command; see internal/confine. There is no further isolation: a pod must
// ask for the namespaces of the machine, unless Options.AllowPodsWithoutIsolation is set.
//
// The stop signal goes to the command alone, as in other runtimes; when the command or the grace
// period ends, SIGKILL goes to all descendants of the command. SIGTERM ends a command without a
// handler for SIGTERM, unlike process 1 of a container.
//
// Check rejects each field that the runtime cannot honor, by name.
//
// # Clients
//
// A command of ExecStream has a shim of its own:
//
//	statusd ──► shim of the command ──► command ──► its descendants
//	   └─ socket pair: its end is the end of the command
//
// The command gets the environment, working directory, user, groups, cgroups, mount namespace and
// confinement of the container. The shim is a subreaper and therefore an ancestor of all processes
// that the command starts. When the client disconnects, or statusd is killed, the shim kills all
// these processes. When the command ends by itself, its background processes stay in the container:
// the shim stays as well, and the marker in their environment makes them end with the container. A
// client that reads slowly blocks the command; no output is buffered in memory.
//
// Attach goes through the socket attach.sock of the container's shim, which holds the streams and
// outlives statusd. A client that reads slowly blocks the container, as a terminal blocks a
// program. A client that has read nothing for a second is detached with [runtime.ErrTooSlow]. Up to
// 64 clients can be attached to a container, and each gets all of the output.
//
// Logs are read from their files. A following reader continues with the next file after a rotation,
// so that no line is lost or repeated, unless all kept files were replaced since the last read. The
// last line of a container gets a newline if it lacks one.
//
// PortForward connects to 127.0.0.1, or ::1 if nothing listens there: the ports of a pod are ports
// of the machine.
//
// Stats come from cgroups. Without cgroups, or where the machine counts CPU time in a separate
// hierarchy, stats come from /proc: CPU time in steps of ten milliseconds, of all descendants of
// the shims, including ended descendants unless their parent ignored their end.
//
// # What the machine must offer
//
// Linux 5.10 or newer, 5.12 to mount anything. A service manager must not kill the shims when it stops or
// restarts statusd: set KillMode=process with systemd. A process that has left its session and wiped its
// environment cannot be found, and stays, if its parent and the shim are killed together.
//
// # State directory
//
//	lock                          held by the runtime that uses the directory
//	removing/                     pods being removed; emptied by Run
//	pods/<uid>/pod.json           the pod as it was started; written last
//	pods/<uid>/volumes/<name>/    emptyDir volumes, and volumes with contents
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
// Records are readable by statusd's user only. The directory of a pod can be traversed, but not
// listed, by the group of the pod, to which all its containers belong. Inside, the directories above
// volumes and termination-log can be traversed by everyone, since containers may run as different
// users. For such containers the parents of the state directory must be traversable too. A shim has
// the directory of its container as working directory, and only the container's ID as argument.
//
// # Goroutines
//
// New starts no goroutine. Run blocks in the kernel; it starts a goroutine that deletes the remains
// of removed pods, one for each killed shim and one for each pod that has volumes with contents,
// and waits for them before it returns. Watch starts a goroutine that ends with its context. All
// followed logs share one goroutine, which ends with the last of them. ExecStream, Attach and
// PortForward start goroutines that end before the method returns, and one that reads the client's
// input and ends with the input. All methods may be called from any goroutine; Close comes last.
package process
