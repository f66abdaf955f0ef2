package process

import (
	"errors"
	"fmt"
	"os"
	osuser "os/user"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime/process/internal/record"
)

// errRunsAsRoot is what a pod's status says of a container that refuses to be root.
var errRunsAsRoot = errors.New("container has runAsNonRoot and image will run as root")

// resolveUser works out whom a container runs as, nil being statusd's own user. What
// the container says overrides what the pod says.
func resolveUser(pod *v1.PodSecurityContext, container *v1.SecurityContext) (*record.User, error) {
	if pod == nil {
		pod = &v1.PodSecurityContext{}
	}
	if container == nil {
		container = &v1.SecurityContext{}
	}
	uid := first(container.RunAsUser, pod.RunAsUser)
	gid := first(container.RunAsGroup, pod.RunAsGroup)
	nonRoot := first(container.RunAsNonRoot, pod.RunAsNonRoot)
	asRoot := (uid == nil && os.Geteuid() == 0) || (uid != nil && *uid == 0)
	if nonRoot != nil && *nonRoot && asRoot {
		return nil, errRunsAsRoot
	}
	asked := uid != nil || gid != nil || pod.FSGroup != nil || len(pod.SupplementalGroups) > 0
	if !asked || os.Geteuid() != 0 { // who is not root may only stay who he is: see Check
		return nil, nil
	}
	user := &record.User{}
	if uid != nil {
		user.UID = uint32(*uid)
	}
	main, groups, err := lookupUser(user.UID)
	if err != nil {
		return nil, err
	}
	user.GID = main
	if gid != nil {
		user.GID = uint32(*gid)
	}
	if policy := pod.SupplementalGroupsPolicy; policy == nil || *policy == v1.SupplementalGroupsPolicyMerge {
		user.Groups = groups
	}
	for _, group := range pod.SupplementalGroups {
		user.Groups = append(user.Groups, uint32(group))
	}
	if pod.FSGroup != nil {
		user.Groups = append(user.Groups, uint32(*pod.FSGroup))
	}
	slices.Sort(user.Groups)
	user.Groups = slices.Compact(user.Groups)
	return user, nil
}

func first[T any](pointers ...*T) *T {
	for _, p := range pointers {
		if p != nil {
			return p
		}
	}
	return nil
}

// lookupUser returns the main group of a user of this machine and the groups that the
// user belongs to. A user that the machine does not know has a main group of its own number
// and no others: group 0 would open to it what belongs to root's group on this machine.
func lookupUser(uid uint32) (main uint32, groups []uint32, err error) {
	user, err := osuser.LookupId(strconv.FormatUint(uint64(uid), 10))
	if _, unknown := errors.AsType[osuser.UnknownUserIdError](err); unknown {
		return uid, nil, nil
	}
	if err != nil {
		return 0, nil, fmt.Errorf("look up user %d: %w", uid, err)
	}
	ids, err := user.GroupIds()
	if err != nil {
		return 0, nil, fmt.Errorf("look up groups of user %d: %w", uid, err)
	}
	for _, id := range append([]string{user.Gid}, ids...) {
		group, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return 0, nil, fmt.Errorf("look up groups of user %d: %w", uid, err)
		}
		groups = append(groups, uint32(group))
	}
	return groups[0], groups, nil
}

// home is the home directory of whom a container runs as.
func home(user *record.User) string {
	uid := os.Geteuid()
	if user != nil {
		uid = int(user.UID)
	}
	if known, err := osuser.LookupId(strconv.Itoa(uid)); err == nil && known.HomeDir != "" {
		return known.HomeDir
	}
	return "/"
}
