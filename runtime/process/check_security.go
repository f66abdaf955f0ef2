package process

import (
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/statusd/statusd/runtime/process/internal/confine"
)

const (
	needsRoot   = "statusd does not run as root of this machine and cannot become another user"
	noSELinux   = "SELinux labels are not set on processes"
	noWindows   = "this machine runs linux"
	noSeccomp   = "only RuntimeDefault and Unconfined are supported"
	noProfile   = "system calls cannot be filtered on this kind of machine; only Unconfined is supported"
	noFilter    = "statusd does not run as root: system calls can be filtered only together with allowPrivilegeEscalation: false"
	noDropping  = "statusd does not run as root: capabilities can be dropped only together with allowPrivilegeEscalation: false"
	noAppArmor  = "a process is not confined by AppArmor; only Unconfined is supported"
	noRootMount = "a process has the file system of the machine"
)

func (c *checker) checkPodSecurity(path *field.Path, security *v1.PodSecurityContext) {
	if security == nil {
		return
	}
	c.checkUser(path, security.RunAsUser, security.RunAsGroup)
	c.reject(security.SELinuxOptions != nil, path.Child("seLinuxOptions"), noSELinux)
	c.reject(security.WindowsOptions != nil, path.Child("windowsOptions"), noWindows)
	c.reject(!c.root && len(security.SupplementalGroups) > 0, path.Child("supplementalGroups"), needsRoot)
	c.reject(!c.root && security.FSGroup != nil, path.Child("fsGroup"), needsRoot)
	c.reject(len(security.Sysctls) > 0, path.Child("sysctls"), noNamespaces)
	c.checkProfiles(path, security.SeccompProfile, security.AppArmorProfile)
}

func (c *checker) checkSecurity(path *field.Path, pod *v1.PodSecurityContext, security *v1.SecurityContext) {
	escalates := security == nil || security.AllowPrivilegeEscalation == nil || *security.AllowPrivilegeEscalation
	c.reject(!c.root && escalates && isConfined(pod, security), path.Child("seccompProfile"), noFilter)
	if security == nil {
		return
	}
	c.checkUser(path, security.RunAsUser, security.RunAsGroup)
	if capabilities := security.Capabilities; capabilities != nil {
		c.checkCapabilities(path.Child("capabilities"), capabilities)
		c.reject(!c.root && escalates && len(capabilities.Drop) > 0, path.Child("capabilities", "drop"), noDropping)
	}
	c.reject(!c.root && isTrue(security.Privileged), path.Child("privileged"), needsRoot)
	c.reject(security.SELinuxOptions != nil, path.Child("seLinuxOptions"), noSELinux)
	c.reject(security.WindowsOptions != nil, path.Child("windowsOptions"), noWindows)
	c.reject(isTrue(security.ReadOnlyRootFilesystem) && !c.views, path.Child("readOnlyRootFilesystem"), noRootMount)
	c.reject(security.ProcMount != nil && *security.ProcMount != v1.DefaultProcMount, path.Child("procMount"), noRootMount)
	c.checkProfiles(path, security.SeccompProfile, security.AppArmorProfile)
}

// checkUser lets anybody but root only ask for who we are already.
func (c *checker) checkUser(path *field.Path, user, group *int64) {
	c.reject(!c.root && user != nil && *user != int64(os.Geteuid()), path.Child("runAsUser"), needsRoot)
	c.reject(!c.root && group != nil && *group != int64(os.Getegid()), path.Child("runAsGroup"), needsRoot)
}

func (c *checker) checkProfiles(path *field.Path, seccomp *v1.SeccompProfile, appArmor *v1.AppArmorProfile) {
	if seccomp != nil {
		wanted := seccomp.Type == v1.SeccompProfileTypeRuntimeDefault
		c.reject(wanted && !confine.CanFilter, path.Child("seccompProfile"), noProfile)
		c.reject(!wanted && seccomp.Type != v1.SeccompProfileTypeUnconfined, path.Child("seccompProfile"), noSeccomp)
	}
	c.reject(appArmor != nil && appArmor.Type != v1.AppArmorProfileTypeUnconfined, path.Child("appArmorProfile"), noAppArmor)
}

// checkCapabilities lets a container keep what it asks for if statusd could hand it on.
func (c *checker) checkCapabilities(path *field.Path, asked *v1.Capabilities) {
	for i, name := range asked.Drop {
		_, known := confine.Capability(string(name))
		c.reject(!known, path.Child("drop").Index(i), fmt.Sprintf("there is no capability %q", name))
	}
	for i, name := range asked.Add {
		bits, known := confine.Capability(string(name))
		path := path.Child("add").Index(i)
		c.reject(!known, path, fmt.Sprintf("there is no capability %q", name))
		c.reject(known && bits != confine.All && (!c.root || bits&confine.Permitted() == 0), path,
			"statusd does not have this capability and cannot hand it on")
		c.reject(known && bits == confine.All && !c.root, path, needsRoot)
	}
}
