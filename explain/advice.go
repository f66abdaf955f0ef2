package explain

import (
	"regexp"
	"strings"
)

// remedy is what to do about a message that has one of the words.
type remedy struct {
	words []string
	do    string
}

// remedyFor is what to do about a message, empty if no remedy is known.
func remedyFor(message string, remedies []remedy) string {
	lower := strings.ToLower(message)
	for _, r := range remedies {
		for _, words := range r.words {
			if strings.Contains(lower, words) {
				return r.do
			}
		}
	}
	return ""
}

// missingRemedies are for what a volume or a configuration lacks.
var missingRemedies = []remedy{
	{[]string{"list of registered csi drivers", "csi driver is not installed"}, "install the CSI driver on the node, or wait until its pod runs there"},
	{[]string{"pvc is not bound"}, "find why the claim is not bound; if its storage class waits for the first consumer, use nodeSelector in place of nodeName, which passes by the scheduler"},
	{[]string{"serviceaccount \"", "serviceaccounts \""}, "create the service account that the pod names"},
	{[]string{"already used by pod(s)", "already exclusively attached", "multi-attach"}, "end the pod that has the volume; if its node is gone for good, delete that pod with --force"},
	{[]string{"subpath"}, "correct subPath of the volume mount: it must be a relative path that the volume can have"},
	{[]string{"couldn't find key", "non-existent"}, "add the key, or mark the reference as optional"},
	{[]string{"runasnonroot"}, "set runAsUser to the number of a user other than root, or drop runAsNonRoot"},
	{[]string{"are supported", "not supported", "unsupported", "cannot be honored"}, "change the field that the message names, or use another node"},
	{[]string{"hostpath"}, "create the path on the node, or correct hostPath and its type"},
	{[]string{"mount failed: exit status 32", "mount.nfs", "connection timed out"}, "check that the server of the volume is reachable from the node and exports the path"},
	{[]string{"wrong fs type", "bad superblock", "fsck found errors", "'fsck' found errors"}, "check the file system of the volume"},
	{[]string{"not found", "not registered"}, "create what is missing, or mark the reference as optional"},
	{[]string{"accessdenied", "access denied", "not authorized", "unauthorized", "permissiondenied"}, "give the pod's identity, or the node's, the right that the message names"},
	{[]string{"forbidden"}, "allow the node to read it"},
	{[]string{"timed out waiting for the condition", "context deadline exceeded"}, "find what keeps the volume from being attached or mounted: the node's log and the driver's have it"},
}

// adviceForMissing is what to do about a config map, a secret, a key or a volume that is missing.
func adviceForMissing(message string) *Next {
	next := &Next{Do: remedyFor(message, missingRemedies), Wait: "the node tries again"}
	if next.Do == "" {
		next.Do = "read the message; it names what is wrong"
	}
	return next
}

// sandboxRemedies are for what a sandbox lacks.
var sandboxRemedies = []remedy{
	{[]string{"cgroupspath", "cgroup driver"}, "configure the same cgroup driver for the kubelet and the container runtime"},
	{[]string{"no runtime for", "runtime handler", "runtimehandler"}, "configure the handler of the runtime class on the node, or correct runtimeClassName"},
	{[]string{"assign an ip address", "no ip addresses available", "no more ips", "no available ip", "ip pool"}, "free addresses of pods, or give the node a larger range of addresses"},
	{[]string{"context deadline exceeded"}, "check the node's runtime: it does not answer in time"},
	{[]string{"no space left"}, "free disk space on the node"},
	{[]string{"pause", "sandbox image"}, "check that the node can pull the image of the sandbox"},
	{[]string{"network", "cni", "plugin type="}, "check the network plug-in of the node"},
	{[]string{"oci runtime", "runc"}, "check the container runtime of the node"},
}

// adviceForSandbox is what to do about a sandbox that cannot be created.
func adviceForSandbox(message string) *Next {
	next := &Next{Do: remedyFor(message, sandboxRemedies), Wait: "the node tries again"}
	if next.Do == "" {
		next.Do = "check the node's runtime and network plug-in"
	}
	return next
}

// creationRemedies are for containers that a runtime cannot create or start.
var creationRemedies = []remedy{
	{[]string{"memory limit too low", "container init was oom-killed"}, "raise the memory limit: it is too low to start the container"},
	{[]string{"are you trying to mount a directory onto a file", "not a directory"}, "correct mountPath and subPath: one is a file where the other is a directory"},
	{[]string{"no command specified"}, "set command: the image has no command"},
	{[]string{"is reserved for"}, "check the runtime and the disk of the node: an earlier try to create the container has not ended"},
	{[]string{"context deadline exceeded"}, "check the runtime and the disk of the node: the runtime does not answer in time"},
	{[]string{"exec format error"}, "use an image for the node's architecture; a script needs a first line such as #!/bin/sh"},
	{[]string{"unable to find user", "no matching entries in passwd"}, "correct runAsUser or the user of the image: the image does not have that user"},
	{[]string{"chdir to cwd"}, "correct the working directory (workingDir); the image must have it"},
	{[]string{"apparmor", "seccomp"}, "put the profile that the message names on the node, or correct its name"},
	{[]string{"executable file not found"}, "correct the name of the command; the image must have it, in PATH or by its whole path"},
	{[]string{"read-only file system"}, "the mount point is missing in the image and its root is read-only: create it in the image"},
	{[]string{"no space left"}, "free disk space on the node"},
}

// adviceForCreation is what to do about a container that the runtime cannot create or start.
func adviceForCreation(c container, message, otherwise string) *Next {
	next := &Next{Do: remedyFor(message, creationRemedies), Wait: "the node tries again"}
	lower := strings.ToLower(message)
	switch {
	case next.Do != "":
	case strings.Contains(lower, "permission denied"):
		next.Do = "make the command executable"
	case strings.Contains(lower, "exec") && strings.Contains(lower, "no such file"):
		next.Do = "correct the path of the command; the image must have it, and the interpreter of its first line"
	default:
		next.Do = otherwise
	}
	return next
}

var (
	// refusal is what a registry answers that wants other credentials. A tag or a digest may have the same digits.
	refusal = regexp.MustCompile(`\b40[13] (?:unauthorized|forbidden)|status(?: code)?:? 40[13]\b|\bunauthorized\b|\bforbidden\b|\bdenied\b|authentication required|no basic auth|authorization failed`)
	absence = regexp.MustCompile(`\bnot found\b|manifest unknown|\b404 not found|does not exist|name unknown`)
	tooMany = regexp.MustCompile(`toomanyrequests|\b429 too many|rate limit`)
)

// refusedByRegistry reports whether a registry, by its answer in lower case, wants other credentials.
func refusedByRegistry(lower string) bool { return refusal.MatchString(lower) }

// adviceForImage is what to do about an image that cannot be pulled, by what the registry answered.
func adviceForImage(message string) *Next {
	next := &Next{Wait: "the node tries again", Do: "check the image's name, that the registry is reachable, and the pull secrets"}
	lower := strings.ToLower(message)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(lower, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has(`must be "host"`):
		next.Do = "use image \"host\" with a command of the machine, or have the pod run on another node"
	case has("no match for platform", "no matching manifest"):
		next.Do = "use an image for the node's architecture"
	case tooMany.MatchString(lower):
		next.Do = "log in to the registry, or use a mirror: its rate limit is reached"
	case refusedByRegistry(lower):
		next.Do = "check imagePullSecrets and the rights of their user; a registry may answer so also if the image does not exist"
	case has("x509", "certificate"):
		next.Do = "let the node trust the registry's certificate"
	case has("http: server gave http response"):
		next.Do = "serve the registry with TLS, or allow it as insecure on the node"
	case has("no such host", "server misbehaving"):
		next.Do = "correct the registry's name, or the node's DNS"
	case has("i/o timeout", "connection refused", "no route", "deadline exceeded", "network is unreachable"):
		next.Do = "check that the node reaches the registry"
	case has("no space left"):
		next.Do = "free disk space on the node"
	case absence.MatchString(lower):
		next.Do = "correct the image's name or tag"
	}
	return next
}
