package node

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Describe is the Node that a [Node] of these options would register, without conditions:
// what there is to say about the machine when there is no API server to ask.
func Describe(o Options) (*v1.Node, error) {
	o.setDefaults()
	reading, err := o.Read()
	if err != nil {
		return nil, err
	}
	return o.object(reading, nil), nil
}

// Look reads the Node from the API now, for what cannot wait for the next look of Run: an administrator may have
// changed its labels a moment ago.
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

// Current is the Node as the API showed it last, with what others have added to it; nil
// as long as the node is not registered. It must not be changed.
func (n *Node) Current() *v1.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current
}
