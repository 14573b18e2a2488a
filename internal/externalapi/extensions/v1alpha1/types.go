// Package v1alpha1 has the fields of extensions.gardener.cloud/v1alpha1 that are read.
package v1alpha1

import (
	"fmt"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml"
)

// OperatingSystemConfigKey is the key of the Secret that holds an OperatingSystemConfig.
const OperatingSystemConfigKey = "osc.yaml"

// OperatingSystemConfig is the configuration of a node's operating system.
type OperatingSystemConfig struct {
	Spec struct {
		Files []File `json:"files"`
	} `json:"spec"`
	Status struct {
		ExtensionFiles []File `json:"extensionFiles"`
	} `json:"status"`
}

// File is a file on a node.
type File struct {
	// HostName limits the file to one host.
	HostName *string `json:"hostName"`
	Content  struct {
		SecretRef *struct {
			Name string `json:"name"`
		} `json:"secretRef"`
	} `json:"content"`
}

// DecodeOperatingSystemConfig decodes a configuration. The error has none of its content.
func DecodeOperatingSystemConfig(content []byte) (*OperatingSystemConfig, error) {
	osc := &OperatingSystemConfig{}
	if err := boundedyaml.Unmarshal(content, osc); err != nil {
		return nil, fmt.Errorf("%d bytes are no OperatingSystemConfig", len(content))
	}
	return osc, nil
}
