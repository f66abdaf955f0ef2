package nodecerts

import (
	"context"
	"fmt"

	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const bootstrappersGroup = "system:bootstrappers"

// bindings are those with which clusters are set up: a bootstrap token may request the first client
// certificate of a node, and a node may renew its own. The roles come with Kubernetes.
var bindings = []struct{ name, role, group string }{
	{"statusd:node-bootstrapper", "system:node-bootstrapper", bootstrappersGroup},
	{"statusd:node-client-certificates", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", bootstrappersGroup},
	{"statusd:node-client-renewals", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", nodesGroup},
}

// Bind creates the bindings that are missing.
func Bind(ctx context.Context, client kubernetes.Interface) error {
	for _, b := range bindings {
		_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, &rbac.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: b.name},
			RoleRef:    rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: b.role},
			Subjects:   []rbac.Subject{{APIGroup: rbac.GroupName, Kind: rbac.GroupKind, Name: b.group}},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("bind %s: %w", b.role, err)
		}
	}
	return nil
}
