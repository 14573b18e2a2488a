package manifests

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/feature"
)

// WriteRights writes the roles of an executable to a folder: for each of its clusters <executable>-<cluster>.yaml with all that there is
// switched on, and <executable>-<cluster>-minimal.yaml with all switched off that can be, if that makes a difference.
func (x Executable[C, E]) WriteRights(dir string) error {
	for _, cluster := range x.Clusters {
		all, err := x.file(cluster, x.Everything())
		if err != nil {
			return err
		}
		minimal, err := x.file(cluster, x.Least())
		if err != nil {
			return err
		}
		name := filepath.Join(dir, x.Name+"-"+string(cluster))
		if err := x.write(name+".yaml", cluster, "with all features on", all); err != nil {
			return err
		}
		if bytes.Equal(all, minimal) || len(minimal) == 0 {
			continue
		}
		if err := x.write(name+"-minimal.yaml", cluster, "with all features off that can be", minimal); err != nil {
			return err
		}
	}
	return nil
}

func (x Executable[C, E]) file(cluster feature.Cluster, cfg *C) ([]byte, error) {
	var out bytes.Buffer
	err := Print(&out, x.roles(cluster, cfg, x.Account))
	return out.Bytes(), err
}

func (x Executable[C, E]) write(file string, cluster feature.Cluster, when string, content []byte) error {
	head := fmt.Sprintf("# Generated from the table of features: do not edit. What %s may do in its %s cluster, %s;\n# \"%s rights\" prints it for a configuration.\n", x.Name, cluster, when, x.Name)
	return os.WriteFile(file, append([]byte(head), content...), 0o644)
}

// roles returns the roles that a configuration needs in a cluster, with their bindings to an account.
func (x Executable[C, E]) roles(cluster feature.Cluster, cfg *C, account string) []client.Object {
	return feature.Roles(x.Name, cluster, x.RightsOf(cfg), Subject(account))
}
