package process

import (
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	needsRoot   = "statusd does not run as root and cannot become another user"
	noSELinux   = "SELinux labels are not set on processes"
	noWindows   = "this machine runs linux"
	noSeccomp   = "a process is not confined by seccomp; only Unconfined is supported"
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

func (c *checker) checkSecurity(path *field.Path, security *v1.SecurityContext) {
	if security == nil {
		return
	}
	c.checkUser(path, security.RunAsUser, security.RunAsGroup)
	if capabilities := security.Capabilities; capabilities != nil {
		c.reject(len(capabilities.Add) > 0, path.Child("capabilities", "add"), "a process has the capabilities of its user")
		c.reject(len(capabilities.Drop) > 0, path.Child("capabilities", "drop"), "a process has the capabilities of its user")
	}
	c.reject(!c.root && isTrue(security.Privileged), path.Child("privileged"), needsRoot)
	c.reject(security.SELinuxOptions != nil, path.Child("seLinuxOptions"), noSELinux)
	c.reject(security.WindowsOptions != nil, path.Child("windowsOptions"), noWindows)
	c.reject(isTrue(security.ReadOnlyRootFilesystem), path.Child("readOnlyRootFilesystem"), noRootMount)
	c.reject(security.AllowPrivilegeEscalation != nil && !*security.AllowPrivilegeEscalation, path.Child("allowPrivilegeEscalation"),
		"a process can gain what set-user-ID programs of the machine give it")
	c.reject(security.ProcMount != nil && *security.ProcMount != v1.DefaultProcMount, path.Child("procMount"), noRootMount)
	c.checkProfiles(path, security.SeccompProfile, security.AppArmorProfile)
}

// checkUser lets anybody but root only ask for who we are already.
func (c *checker) checkUser(path *field.Path, user, group *int64) {
	c.reject(!c.root && user != nil && *user != int64(os.Geteuid()), path.Child("runAsUser"), needsRoot)
	c.reject(!c.root && group != nil && *group != int64(os.Getegid()), path.Child("runAsGroup"), needsRoot)
}

func (c *checker) checkProfiles(path *field.Path, seccomp *v1.SeccompProfile, appArmor *v1.AppArmorProfile) {
	c.reject(seccomp != nil && seccomp.Type != v1.SeccompProfileTypeUnconfined, path.Child("seccompProfile"), noSeccomp)
	c.reject(appArmor != nil && appArmor.Type != v1.AppArmorProfileTypeUnconfined, path.Child("appArmorProfile"), noAppArmor)
}
