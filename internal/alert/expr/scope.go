package expr

// Scope is the kind of a rule's subject. One alert stands for one subject: a pod, a container, the
// node or the kubelet.
type Scope string

// The scopes.
const (
	ScopePod       Scope = "pod"
	ScopeContainer Scope = "container"
	ScopeNode      Scope = "node"
	ScopeKubelet   Scope = "kubelet"
)

// Scopes are all scopes.
var Scopes = []Scope{ScopePod, ScopeContainer, ScopeNode, ScopeKubelet}
