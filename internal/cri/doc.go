// Package cri runs pods as containers of images through a container runtime that implements CRI, such as containerd or CRI-O.
//
//	statusd ── gRPC ──► containerd ──► shim ──► container
//	   │                    ▲
//	   ├─ records, volumes  │ labels and annotations, as the kubelet writes them
//	   └─ relist, each second
//
// The package is internal because no program outside the module needs it yet.
//
// # What is remembered, and where
//
// The container runtime keeps sandboxes and containers; their labels and annotations name the pod, the container and the attempt. The
// directory of a pod keeps the rest: the pod itself, its addresses, its volumes, the files for termination messages, and the deadline of
// each container that is being stopped. A pod without a record in this directory belongs to another agent and is not touched, whatever its
// labels say.
//
//	pods/<uid>/pod.json                      the pod as it was started, written last
//	pods/<uid>/volumes/<name>/               emptyDir volumes, and those with contents; secrets and tokens in memory
//	pods/<uid>/subpaths/<container>/<n>      mounts of sub-paths, which no container can replace by a link
//	pods/<uid>/etc-hosts                     /etc/hosts of its containers
//	pods/<uid>/containers/<name>/<attempt>/  termination-log, stop.json
//	LogDir/<namespace>_<name>_<uid>/<container>/<attempt>.log
//	LogDir/../containers/<pod>_<namespace>_<container>-<id>.log   a link to it
//
// After a restart of statusd, of the container runtime or of both, [New] lists the existing pods. A container that has ended
// meanwhile is reported with its exit code; a container that was created and never started is removed.
//
// # What changes
//
// Run lists sandboxes and containers each second, and at once when a stop has ended. It requests the status of a container only when the
// container's state has changed, so that a list costs two requests for any number of containers. States only move forward. CRI events are
// not used: containerd 1.6 has none, and 1.7 hands each event to one client only.
//
// # A runtime that fails
//
// Each request has a timeout. While the container runtime does not answer, pods keep the last observed state, nothing is stopped or removed, and after
// 30 s [Runtime.NotReady] returns the error. The first list after an outage finds all missed changes. A container counts as ended, with an unknown exit
// code, only if a successful list lacks it; processes left in its control group are killed first. A container that the container runtime has lost is
// stopped. A command of a probe about which the container runtime says nothing has neither succeeded nor failed. A start without an answer counts
// neither as started nor as failed: the next list decides.
//
// If a sandbox has ended, for example by a reboot, the next start of a container creates a new sandbox, the old
// containers no longer count, and init containers run again.
//
// # Other agents
//
// [Runtime.Adopt] takes over the pods of a stopped kubelet by writing records for them; their volumes stay where they are. [Runtime.Release] does
// the reverse: it moves volumes to the kubelet's directories. Labels, annotations and the hash of a container are the same as the kubelet's, so a
// kubelet restarts none of the containers.
//
// # Stops
//
// StopContainer records the time by which the container must have ended, and returns. A goroutine then requests the stop from the container
// runtime and kills the container at that time. The goroutine ends with statusd; the next statusd reads the time and continues.
//
// # Images
//
// Images are checked each minute. When their file system is 85% full, images without a container are removed, least recently used first,
// until it is 80% full. An image that was pulled or used in the last two minutes stays, and so does an image that the container runtime
// protects. Under disk pressure all unused images are removed before a pod is evicted. A pull has a goroutine, and StartContainer returns until its
// end, so that the worker of the pod can do other work. A pull is canceled when its pod ends.
//
// images/pulled has whose credentials have pulled an image: a pod without such credentials must pull the image again, unless the pod has used the
// image before. images/pulling has the pulls that are under way: what a kill has interrupted counts as pulled with unknown credentials. Images without
// a record came another way and are for all pods. The files have the format of the kubelet's, and change hands with the pods.
//
// # Goroutines
//
// New starts none. Run has one loop each that lists, rotates logs, keeps images and removes what was made too late, and waits for all. Each container that is being stopped has
// one or two goroutines, each pull has one, and Close waits for them. Each pod with contents in volumes has one goroutine while Run runs. Goroutines of Watch, Logs and streams end
// with their caller's context.
package cri
