package highavailabilityconfig

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
)

// Annotations of Namespaces.
const (
	FailureTolerance = prefix + "failure-tolerance-type"
	Zones            = prefix + "zones"
	ZonePinning      = prefix + "zone-pinning"
)

type needs struct {
	// tolerance is the kind of failures that components must survive. An empty annotation is different from a missing
	// one.
	tolerance      string
	toleranceGiven bool
	// zones are sorted.
	zones   []string
	pinning bool
}

// needsOf returns the requirements of a namespace (HA-1).
func (w webhook) needsOf(ctx context.Context, name string) (needs, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if err := w.namespaces.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return needs{}, admission.Refuse(http.StatusInternalServerError, "%s", err)
	}
	var n needs
	n.tolerance, n.toleranceGiven = namespace.Annotations[FailureTolerance]
	n.zones = zonesIn(namespace.Annotations[Zones])
	n.pinning = isTrue(namespace.Annotations[ZonePinning])
	return n, nil
}

// zonesIn returns the zones of a list, each once, sorted, and without blanks around them (WB-7).
func zonesIn(list string) []string {
	var zones []string
	for zone := range strings.SplitSeq(list, ",") {
		if zone = strings.TrimSpace(zone); zone != "" {
			zones = append(zones, zone)
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

func isTrue(value string) bool {
	is, err := strconv.ParseBool(value)
	return err == nil && is
}
