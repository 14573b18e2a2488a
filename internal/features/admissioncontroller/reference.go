package admissioncontroller

import (
	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
)

// Reference is the page about all features.
func Reference() string {
	cfg := &configuration{}
	config.SetDefaults(cfg)
	return feature.Reference("admission-controller", Table(), cfg)
}
