package admissiontest

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/test/expect"
)

func mutate(change func(*corev1.Pod)) admission.Func {
	return admission.Mutate(corev1.SchemeGroupVersion.WithKind("Pod"), func(_ context.Context, pod *corev1.Pod) error {
		change(pod)
		return nil
	})
}

// each changes all containers of some lists.
func each(pod *corev1.Pod, init, ephemeral bool, change func(*corev1.Container)) {
	for i := range pod.Spec.Containers {
		change(&pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		if init {
			change(&pod.Spec.InitContainers[i])
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if ephemeral {
			c := corev1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
			change(&c)
			pod.Spec.EphemeralContainers[i].EphemeralContainerCommon = corev1.EphemeralContainerCommon(c)
		}
	}
}

func image(c *corev1.Container) { c.Image = "other" }

// TestPropertiesHold: webhooks that keep the properties pass.
func TestPropertiesHold(t *testing.T) {
	Pods{
		Decide:  mutate(func(pod *corev1.Pod) { each(pod, true, true, image) }),
		Touches: []string{"/spec/containers/*/image", "/spec/initContainers/*/image", "/spec/ephemeralContainers/*/image"},
	}.Check(t)
	Pods{
		Decide:  mutate(func(pod *corev1.Pod) { each(pod, true, false, image) }),
		Touches: []string{"/spec/containers/*/image", "/spec/initContainers/*/image"}, Spares: []string{"ephemeralContainers"},
	}.Check(t)
}

// TestPropertiesTell (FM-2 is the property of symmetry): each property finds a webhook that breaks it.
func TestPropertiesTell(t *testing.T) {
	const sent = `{"spec":{"containers":[{"name":"a","image":"i"}],"nodeName":"x"}}`
	everywhere := []string{"/spec"}
	for name, c := range map[string]struct {
		properties Pods
		property   func(Pods) error
		want       string
	}{
		"a list grows with each call": {
			Pods{Decide: mutate(func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{}) })},
			func(l Pods) error { return l.objects().twice([]byte(sent), new(int)) }, "what became of it",
		},
		"a panic": {
			Pods{Decide: mutate(func(*corev1.Pod) { panic("boom") })},
			func(l Pods) error { return l.objects().twice([]byte(sent), new(int)) }, "panic: boom",
		},
		"FM-2/an update is forgotten": {
			Pods{Decide: func(ctx context.Context, r *admissionv1.AdmissionRequest) (admission.Patch, error) {
				if r.Operation == admissionv1.Update {
					return nil, nil
				}
				return mutate(func(p *corev1.Pod) { p.Spec.Hostname = "h" })(ctx, r)
			}},
			func(l Pods) error { return l.objects().symmetric([]byte(sent), new(int)) }, "a creation is answered with",
		},
		"something else changes": {
			Pods{Decide: mutate(func(p *corev1.Pod) { p.Spec.Hostname = "h" }), Touches: []string{"/spec/nodeName"}},
			func(l Pods) error { return l.objects().touched([]byte(sent), new(int)) }, `/spec/hostname became "h"`,
		},
		"something else goes": {
			Pods{Decide: mutate(func(p *corev1.Pod) { p.Spec.NodeName = "" }), Touches: []string{"/spec/hostname"}},
			func(l Pods) error { return l.objects().touched([]byte(sent), new(int)) }, `/spec/nodeName was "x"`,
		},
		"containers for initialisation are forgotten": {
			Pods{Decide: mutate(func(p *corev1.Pod) { each(p, false, true, image) }), Touches: everywhere},
			func(l Pods) error { return l.alike([]byte(sent), new(int)) }, "the container of initContainers became",
		},
		"ephemeral containers are forgotten": {
			Pods{Decide: mutate(func(p *corev1.Pod) { each(p, true, false, image) }), Touches: everywhere},
			func(l Pods) error { return l.alike([]byte(sent), new(int)) }, "the container of ephemeralContainers became",
		},
		"a list that the rule spares is changed": {
			Pods{Decide: mutate(func(p *corev1.Pod) { each(p, true, true, image) }), Touches: everywhere, Spares: []string{"initContainers"}},
			func(l Pods) error { return l.alike([]byte(sent), new(int)) }, "the container of initContainers became",
		},
	} {
		expect.ErrorContains(t, c.property(c.properties), c.want, "%s", name)
	}
}
