// Package v1alpha1 has the fields of gardenlet.config.gardener.cloud/v1alpha1 that are read.
package v1alpha1

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
)

const (
	group = "gardenlet.config.gardener.cloud"
	kind  = "GardenletConfiguration"
)

// Configuration is the configuration of a gardenlet.
type Configuration struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	SeedConfig *SeedConfig `json:"seedConfig,omitempty"`
}

// SeedConfig is the Seed that the gardenlet registers.
type SeedConfig struct {
	Spec gardencorev1beta1.SeedSpec `json:"spec,omitempty"`
}

// Decode decodes an embedded configuration. The error has none of its content.
func Decode(raw *runtime.RawExtension) (*Configuration, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, errors.New("there is no gardenlet configuration")
	}
	c := &Configuration{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw.Raw, c); err != nil {
		return nil, fmt.Errorf("decoding the gardenlet configuration: %w", err)
	}
	if c.Kind != kind || !strings.HasPrefix(c.APIVersion, group+"/") {
		return nil, fmt.Errorf("decoding the gardenlet configuration: got kind %q of %q, want %s of %s", c.Kind, c.APIVersion, kind, group)
	}
	return c, nil
}
