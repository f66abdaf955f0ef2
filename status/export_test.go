package status

import v1 "k8s.io/api/core/v1"

// NewFakeServer returns a client of a fake server with one pod, as the user of the pod's
// node, for a test that holds the fake against a real server.
func NewFakeServer(pod *v1.Pod) Client {
	f := newFakeAPI()
	f.node = pod.Spec.NodeName
	f.put(pod)
	return f
}

// ClientOf returns the client that the manager uses.
func ClientOf(m *Manager) Client { return m.opts.Client }
