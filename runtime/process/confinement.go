package process

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime/process/internal/confine"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// confinement is what a container is kept from, nil being nothing. It is for containers that
// Check has let through.
//
// Who chooses what is at /etc must not gain by it from programs of the machine that trust
// what they read there, such as su: a container with mounts that is not root can gain nothing.
func confinement(pod *v1.PodSecurityContext, container *v1.SecurityContext, user *record.User, view *record.View) *record.Confinement {
	c := record.Confinement{Seccomp: isConfined(pod, container)}
	if container != nil {
		c.NoNewPrivileges = container.AllowPrivilegeEscalation != nil && !*container.AllowPrivilegeEscalation
		c.Capabilities = capabilities(container.Capabilities)
	}
	if isChosen(view) && user != nil && user.UID != 0 {
		c.NoNewPrivileges = true
	}
	if c == (record.Confinement{}) {
		return nil
	}
	return &c
}

// isChosen reports whether a container sees something of the machine in another way because it asked for it: the
// termination log is at its default path for all.
func isChosen(view *record.View) bool {
	return view != nil && (view.ReadOnlyRoot || view.Hostname != "" || slices.ContainsFunc(view.Mounts, func(m record.Mount) bool {
		return m.Target != v1.TerminationMessagePathDefault
	}))
}

// capabilities returns the allowed capabilities as bits: all, minus the dropped, plus the added
// capabilities. Nil keeps the capabilities of the user.
func capabilities(asked *v1.Capabilities) *uint64 {
	if asked == nil || len(asked.Drop) == 0 {
		return nil
	}
	keep := confine.All
	for _, name := range asked.Drop {
		bits, _ := confine.Capability(string(name))
		keep &^= bits
	}
	for _, name := range asked.Add {
		bits, _ := confine.Capability(string(name))
		keep |= bits
	}
	return &keep
}

// isConfined reports whether the container asks for the default seccomp profile. What it
// says itself counts before what its pod says.
func isConfined(pod *v1.PodSecurityContext, container *v1.SecurityContext) bool {
	var profile *v1.SeccompProfile
	if pod != nil {
		profile = pod.SeccompProfile
	}
	if container != nil && container.SeccompProfile != nil {
		profile = container.SeccompProfile
	}
	return profile != nil && profile.Type == v1.SeccompProfileTypeRuntimeDefault
}
