package feature

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Roles returns the roles of an executable in a cluster and their bindings to a subject: a ClusterRole for
// permissions in all namespaces, a Role for each single namespace.
func Roles(executable string, cluster Cluster, rights map[Scope][]rbacv1.PolicyRule, subject rbacv1.Subject) []client.Object {
	name := "espalier:" + executable + ":" + string(cluster)
	scopes := make([]Scope, 0, len(rights))
	for scope := range rights {
		if scope.Cluster == cluster {
			scopes = append(scopes, scope)
		}
	}
	slices.SortFunc(scopes, func(a, b Scope) int { return cmp.Or(strings.Compare(a.Namespace, b.Namespace)) })
	var all []client.Object
	for _, scope := range scopes {
		meta := metav1.ObjectMeta{Name: name, Namespace: scope.Namespace}
		if scope.Namespace == "" {
			all = append(all,
				&rbacv1.ClusterRole{TypeMeta: typed("ClusterRole"), ObjectMeta: meta, Rules: rights[scope]},
				&rbacv1.ClusterRoleBinding{TypeMeta: typed("ClusterRoleBinding"), ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: []rbacv1.Subject{subject}})
			continue
		}
		all = append(all,
			&rbacv1.Role{TypeMeta: typed("Role"), ObjectMeta: meta, Rules: rights[scope]},
			&rbacv1.RoleBinding{TypeMeta: typed("RoleBinding"), ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: []rbacv1.Subject{subject}})
	}
	return all
}

func typed(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}
