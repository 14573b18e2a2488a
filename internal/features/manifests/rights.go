package manifests

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/process"
)

// Rights returns the command that prints the roles which what a configuration switches on needs in one of its clusters.
func Rights[C, E any](executable string, clusters []feature.Cluster, rows []feature.Row[C, E], namespaces func(*C) map[feature.Cluster][]string,
	flags func(*pflag.FlagSet), configuration func(*pflag.FlagSet) (*C, error)) process.Subcommand {
	cluster, account := string(clusters[0]), "garden/gardener-"+executable
	names := make([]string, len(clusters))
	for i, c := range clusters {
		names[i] = string(c)
	}
	return process.Subcommand{
		Name:  "rights",
		Short: "Print the roles that what the configuration switches on needs",
		Flags: func(set *pflag.FlagSet) {
			flags(set)
			set.StringVar(&cluster, "cluster", cluster, "cluster to print them for: "+strings.Join(names, " or "))
			set.StringVar(&account, "service-account", account, "ServiceAccount that gets them, as <namespace>/<name>; a name alone is a user")
		},
		Run: func(set *pflag.FlagSet, out io.Writer) error {
			cfg, err := configuration(set)
			if err != nil {
				return err
			}
			subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: account}
			if namespace, name, isAccount := strings.Cut(account, "/"); isAccount {
				subject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
			}
			for _, known := range clusters {
				if string(known) == cluster {
					return Print(out, feature.Roles(executable, known, feature.Rights(feature.Enabled(rows, cfg), cfg, namespaces(cfg)), subject))
				}
			}
			return fmt.Errorf("--cluster: %q is none of %s", cluster, strings.Join(names, ", "))
		},
	}
}
