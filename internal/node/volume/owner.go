package volume

import (
	"io/fs"
	"os"

	v1 "k8s.io/api/core/v1"
)

// owner is to whom the files of a volume belong. They are root's, and the group lets the pod in:
// a container that owned a directory could put links into it. On a machine whose other users can
// reach the directory of the volume it is the directory itself that keeps them out: the files have
// the modes that the pod asks for.
type owner struct {
	uid, gid int // of the directory; -1 leaves it as it is
	dirMode  fs.FileMode
	fileUID  int  // of files that only their owner can read; -1 leaves it
	isGroup  bool // the group reads all files
	private  bool // a file can be kept from all but the pod
}

// ownerOf is to whom the files of a pod belong.
func (c *Contents) ownerOf(pod *v1.Pod) owner {
	if c.alone {
		return isolatedOwner(pod)
	}
	return ownerOf(pod, c.root, c.group)
}

// isolatedOwner is the owner of a volume that only containers of the pod reach. An fsGroup reads all files. A token is for the one user that all
// containers name, or for the fsGroup, and else for every user, as with the kubelet.
func isolatedOwner(pod *v1.Pod) owner {
	o := owner{uid: -1, gid: -1, dirMode: 0o777, fileUID: -1}
	if context := pod.Spec.SecurityContext; context != nil && context.FSGroup != nil {
		o.gid, o.dirMode, o.isGroup, o.private = int(*context.FSGroup), 0o777|fs.ModeSetgid, true, true
	}
	if uid, named := namedUser(pod); named {
		o.fileUID, o.private = uid, true
	}
	return o
}

// namedUser is the user that each container of the pod asks to run as.
func namedUser(pod *v1.Pod) (uid int, named bool) {
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			own := namedUserOf(pod, &list[i])
			if own == nil || named && int(*own) != uid {
				return 0, false
			}
			uid, named = int(*own), true
		}
	}
	return uid, named
}

func namedUserOf(pod *v1.Pod, container *v1.Container) *int64 {
	if context := container.SecurityContext; context != nil && context.RunAsUser != nil {
		return context.RunAsUser
	}
	if context := pod.Spec.SecurityContext; context != nil {
		return context.RunAsUser
	}
	return nil
}

// ownerOf lets in the group of the pod.
func ownerOf(pod *v1.Pod, root bool, group uint32) owner {
	if !root {
		return owner{uid: -1, gid: -1, dirMode: 0o700, fileUID: -1, private: true}
	}
	if context := pod.Spec.SecurityContext; context != nil && context.FSGroup != nil && *context.FSGroup != 0 {
		group = uint32(*context.FSGroup)
	}
	if group != 0 {
		return owner{uid: 0, gid: int(group), dirMode: 0o750 | fs.ModeSetgid, fileUID: -1, isGroup: true, private: true}
	}
	// An earlier release has started the pod. Its containers share a user, or nothing.
	if uid, shared := sharedUser(pod); shared {
		return owner{uid: uid, gid: -1, dirMode: 0o500, fileUID: uid, private: true}
	}
	return owner{uid: -1, gid: -1, dirMode: 0o755, fileUID: -1}
}

// sharedUser is the user that all containers of the pod run as, if there is one. A
// container that names none runs as our own user.
func sharedUser(pod *v1.Pod) (uid int, shared bool) {
	first := true
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			own := userOf(pod, &list[i])
			if !first && own != uid {
				return 0, false
			}
			uid, first = own, false
		}
	}
	return uid, !first
}

func userOf(pod *v1.Pod, container *v1.Container) int {
	if context := container.SecurityContext; context != nil && context.RunAsUser != nil {
		return int(*context.RunAsUser)
	}
	if context := pod.Spec.SecurityContext; context != nil && context.RunAsUser != nil {
		return int(*context.RunAsUser)
	}
	return os.Geteuid()
}
