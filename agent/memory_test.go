package agent

import "testing"

// A Node that was registered is taken for deleted if the API server does not have it. The API server of another cluster never had it.
func TestMemory_IsOfOneNode(t *testing.T) {
	var m Memory
	first := m.nodeOf("n", "a:6443", "/state")
	if m.nodeOf("n", "a:6443", "/state") != first {
		t.Error("the memory of the Node is lost in a reload")
	}
	if m.nodeOf("n", "b:6443", "/state") == first || m.nodeOf("n2", "b:6443", "/state") == m.nodeOf("n", "b:6443", "/state") {
		t.Error("another Node has the memory of the Node before")
	}
}
