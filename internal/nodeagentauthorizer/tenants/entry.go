package tenants

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml"
)

// suffix is the file extension of entries.
const suffix = ".yaml"

// readEntry reads the files of a shoot in a folder, its entry and its kubeconfig; the digest changes with either. A
// relative path of the kubeconfig is relative to the folder.
func readEntry(folder, name string) (*config.ShootEntry, [sha256.Size]byte, error) {
	var none [sha256.Size]byte
	content, err := os.ReadFile(filepath.Join(folder, name+suffix))
	if err != nil {
		return nil, none, err
	}
	entry := &config.ShootEntry{}
	if err := boundedyaml.UnmarshalStrict(content, entry); err != nil {
		return nil, none, fmt.Errorf("error decoding entry: %w", err)
	}
	config.SetDefaultsEntry(entry)
	if err := config.ValidateEntry(entry).ToAggregate(); err != nil {
		return nil, none, err
	}
	kubeconfig := &entry.TargetClientConnection.Kubeconfig
	if !filepath.IsAbs(*kubeconfig) {
		*kubeconfig = filepath.Join(folder, *kubeconfig)
	}
	credentials, err := os.ReadFile(*kubeconfig)
	if err != nil {
		return nil, none, err
	}
	return entry, sha256.Sum256(append(append(content, 0), credentials...)), nil
}
