package node

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Describe returns the Node that a [Node] with these options would register, without conditions: a
// description of the machine when there is no API server.
func Describe(o Options) (*v1.Node, error) {
	o.setDefaults()
	reading, err := o.Read()
	if err != nil {
		return nil, err
	}
	return o.object(reading, nil), nil
}

// Look reads the Node from the API now, for callers that cannot wait for the next reading of Run: an
// administrator may have just changed its labels.
func (n *Node) Look(ctx context.Context) (*v1.Node, error) {
	node, err := n.get(ctx, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.uid == node.UID {
		n.current = node
	}
	return node, nil
}

// Current returns the Node as last read from the API, including the changes of other writers, or
// nil until the node is registered. The Node must not be modified.
func (n *Node) Current() *v1.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current
}
