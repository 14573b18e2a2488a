package process

import (
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/guard"
)

// Guard returns the guard of metrics and of the debugging endpoints; nil unless the configuration enables
// authentication (OPB-25). The guard has its own connections.
func Guard(d *shared.Debugging, config *rest.Config, log logr.Logger) (*guard.Guard, error) {
	if d == nil || !d.Authentication.Enabled {
		return nil, nil
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("authentication: %w", err)
	}
	return guard.New(config, client, clock.RealClock{}, log)
}
