// Package cri is the runtime that runs pods as containers of images, over a container runtime that speaks CRI, such as containerd or CRI-O.
//
//	statusd ── gRPC ──► containerd ──► shim ──► container
//	   │                    ▲
//	   ├─ records, volumes  │ labels and annotations, as the kubelet writes them
//	   └─ relist, each second
//
// It is not public: the module has no room for another promise, and no program outside of it needs one yet.
//
// # What is remembered, and where
//
// The container runtime remembers sandboxes and containers; their labels and annotations say of which pod, which container and which attempt
// they are. What it does not know is in the directory of the pod: the pod itself, its addresses, its volumes, the files for termination
// messages, and until when a container that is being stopped may take. A pod that has no record here belongs to another agent and
// is left alone, whatever its labels say.
//
//	pods/<uid>/pod.json                      the pod as it was started, written last
//	pods/<uid>/volumes/<name>/               emptyDir volumes, and those with contents
//	pods/<uid>/subpaths/<container>/<n>      mounts of sub-paths, which no container can replace by a link
//	pods/<uid>/etc-hosts                     /etc/hosts of its containers
//	pods/<uid>/containers/<name>/<attempt>/  termination-log, stop.json
//	LogDir/<namespace>_<name>_<uid>/<container>/<attempt>.log
//
// After a restart of statusd, of the container runtime or of both, [New] lists what there is. A container that has ended meanwhile is
// reported with its exit code; one that was created and never started is removed.
//
// # What changes
//
// Run lists sandboxes and containers each second, and at once when a stop has ended. A container is asked for its status when its state has
// changed, so that a list costs two requests however many containers there are. States only move forward. Events of CRI are not used:
// containerd 1.6 has none, and 1.7 hands each event to one client only.
//
// # A runtime that fails
//
// Each request has a timeout. While the container runtime does not answer, pods keep the state that was last seen, nothing is
// stopped or removed, and [Runtime.NotReady] says so. When it answers again the next list finds what was missed. A container that is
// no longer listed counts as ended, with an unknown exit code, only if a list that was answered lacks it.
//
// A sandbox that has ended, as with the machine, is replaced when the next container starts: its containers are of an
// earlier place then, and init containers run again.
//
// # Stops
//
// StopContainer writes down by when the container must have ended, and returns. A goroutine asks the container runtime to stop the container
// and kills it at that time. The goroutine ends with statusd; the next statusd reads the time and goes on.
//
// # Images
//
// Images are looked at each minute. When their file system is 85% full, those that no container of any agent uses are removed until it is 80%
// full, the ones that were not used for longest first; an image that was pulled or used in the last two minutes stays, and so do those that
// the container runtime protects. Under disk pressure all unused images go before a pod is evicted. A pull ends with its pod.
//
// # Goroutines
//
// New starts none. Run has one loop that lists, one that rotates logs and one for images, and waits for all. Each container that is being stopped has one or two,
// each pod with contents in volumes has one while Run runs; Close waits for the former. Watch, Logs and streams start some that end with
// their caller's context.
package cri
