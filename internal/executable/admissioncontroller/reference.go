package admissioncontroller

import (
	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
)

// turned returns a configuration with all switches on or off.
func turned(on bool) *configuration {
	cfg := &configuration{Debugging: &shared.Debugging{}}
	for _, row := range Table() {
		feature.Turn(cfg, row.Switch, on)
	}
	config.SetDefaults(cfg)
	return cfg
}
