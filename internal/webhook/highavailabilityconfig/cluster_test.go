package highavailabilityconfig

import (
	"context"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/test/expect"
)

// cluster is a target with the namespace "n".
type cluster struct {
	annotations map[string]string
	autoscalers []autoscalingv2.HorizontalPodAutoscaler
	nodes       int
	// broken are the kinds that cannot be read; "missing" means that there is no namespace.
	broken string
	// reads are the kinds that were read.
	reads *[]string
}

func (c cluster) read(kind string) error {
	if c.reads != nil {
		*c.reads = append(*c.reads, kind)
	}
	return expect.Holds(c.broken != kind, "away")
}

func (c cluster) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if key.Name != "n" || key.Namespace != "" || c.broken == "missing" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, key.Name)
	}
	object.(*metav1.PartialObjectMetadata).Annotations = c.annotations
	return c.read("namespaces")
}

func (c cluster) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	switch l := list.(type) {
	case *autoscalingv2.HorizontalPodAutoscalerList:
		if asked.Namespace != "n" {
			return fmt.Errorf("asked for autoscalers of %q", asked.Namespace)
		}
		l.Items = c.autoscalers
		return c.read("autoscalers")
	case *metav1.PartialObjectMetadataList:
		l.Items = make([]metav1.PartialObjectMetadata, min(int64(c.nodes), asked.Limit))
		return c.read("nodes")
	}
	return fmt.Errorf("asked for %T", list)
}

// in returns a cluster of three Nodes whose namespace has annotations, given as key and value without the prefix.
func in(annotations ...string) cluster {
	c := cluster{annotations: map[string]string{}, nodes: 3}
	for i := 0; i < len(annotations); i += 2 {
		c.annotations[prefix+annotations[i]] = annotations[i+1]
	}
	return c
}

// scaling returns the cluster with an autoscaler of a Deployment "x".
func (c cluster) scaling(most int32) cluster { return c.scalingOf("apps/v1", "Deployment", "x", most) }

func (c cluster) scalingOf(apiVersion, kind, name string, most int32) cluster {
	c.autoscalers = []autoscalingv2.HorizontalPodAutoscaler{{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}, MaxReplicas: most,
	}}}
	return c
}

// plain is a configuration without tolerations.
var plain = &config.HighAvailabilityConfigWebhookConfig{}

// tolerant is one with tolerations of a minute.
var tolerant = &config.HighAvailabilityConfigWebhookConfig{DefaultNotReadyTolerationSeconds: ptr.To[int64](60), DefaultUnreachableTolerationSeconds: ptr.To[int64](60)}

func (c cluster) decide() admission.Func { return Decide(plain, c, c) }
