package reference

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/espalier-project/espalier/internal/executable/manifests"
	"github.com/espalier-project/espalier/internal/feature"
)

// WriteRights writes the roles of an executable to a folder: for each of its clusters <executable>-<cluster>.yaml
// with every feature enabled, and <executable>-<cluster>-minimal.yaml with every optional feature disabled, if that
// makes a difference.
func WriteRights[C, E any](x manifests.Executable[C, E], dir string) error {
	for _, cluster := range x.Clusters {
		all, err := rolesOf(x, cluster, x.Everything())
		if err != nil {
			return err
		}
		minimal, err := rolesOf(x, cluster, x.Least())
		if err != nil {
			return err
		}
		name := filepath.Join(dir, x.Name+"-"+string(cluster))
		if err := writeRoles(x.Name, name+".yaml", cluster, "with all features on", all); err != nil {
			return err
		}
		if bytes.Equal(all, minimal) || len(minimal) == 0 {
			continue
		}
		if err := writeRoles(x.Name, name+"-minimal.yaml", cluster, "with all features off that can be", minimal); err != nil {
			return err
		}
	}
	return nil
}

func rolesOf[C, E any](x manifests.Executable[C, E], cluster feature.Cluster, cfg *C) ([]byte, error) {
	var out bytes.Buffer
	err := manifests.Print(&out, x.Roles(cluster, cfg, x.Account))
	return out.Bytes(), err
}

func writeRoles(executable, file string, cluster feature.Cluster, when string, content []byte) error {
	head := fmt.Sprintf("# Generated from the table of features: do not edit. What %s may do in its %s cluster, %s;\n# \"%s rights\" prints it for a configuration.\n", executable, cluster, when, executable)
	return os.WriteFile(file, append([]byte(head), content...), 0o644)
}
