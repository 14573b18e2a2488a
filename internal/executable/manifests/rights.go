package manifests

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/process"
)

// Rights returns the command that prints the roles for a configuration in one cluster.
func (x Executable[C, E]) Rights() process.Subcommand {
	cluster, account := string(x.Clusters[0]), x.Account
	names := make([]string, len(x.Clusters))
	for i, c := range x.Clusters {
		names[i] = string(c)
	}
	return process.Subcommand{
		Name:  "rights",
		Short: "Print the RBAC roles that this configuration needs",
		Flags: func(set *pflag.FlagSet) {
			x.Flags(set)
			set.StringVar(&cluster, "cluster", cluster, "cluster of the roles: "+strings.Join(names, " or "))
			set.StringVar(&account, "service-account", account, "ServiceAccount that gets the roles, as <namespace>/<name>; a name alone is a user")
		},
		Run: func(set *pflag.FlagSet, out io.Writer) error {
			cfg, err := x.Configuration(set)
			if err != nil {
				return err
			}
			for _, known := range x.Clusters {
				if string(known) == cluster {
					return Print(out, x.Roles(known, cfg, account))
				}
			}
			return fmt.Errorf("--cluster: %q is none of %s", cluster, strings.Join(names, ", "))
		},
	}
}

// Roles returns the roles for a configuration in a cluster, with their bindings to an account.
func (x Executable[C, E]) Roles(cluster feature.Cluster, cfg *C, account string) []client.Object {
	return feature.Roles(x.Name, cluster, x.RightsOf(cfg), Subject(account))
}

// RightsOf returns the permissions of the features that a configuration switches on.
func (x Executable[C, E]) RightsOf(cfg *C) map[feature.Scope][]rbacv1.PolicyRule {
	var namespaces map[feature.Cluster][]string
	if x.Namespaces != nil {
		namespaces = x.Namespaces(cfg)
	}
	return feature.Rights(feature.Enabled(x.Rows, cfg), cfg, namespaces)
}

// Subject returns the subject of role bindings: a ServiceAccount as <namespace>/<name>, or a user.
func Subject(account string) rbacv1.Subject {
	if namespace, name, isAccount := strings.Cut(account, "/"); isAccount {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: account}
}
