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
