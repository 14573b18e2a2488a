package feature

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestInstallation: who is asked about in which mode (A14, DEP-1).
func TestInstallation(t *testing.T) {
	expect.Equal(t, (Installation{Prefix: "virtual-garden-"}).App(), "virtual-garden-gardener-resource-manager", "DEP-1")
	for name, c := range map[string]struct {
		shoot     bool
		namespace labels.Set
		want      bool
	}{
		"runtime, a namespace with a role":           {false, labels.Set{"gardener.cloud/role": "", "kubernetes.io/metadata.name": "n"}, true},
		"runtime, a namespace without a role":        {false, labels.Set{"kubernetes.io/metadata.name": "n"}, false},
		"runtime, kube-system":                       {false, labels.Set{"gardener.cloud/role": "x", "kubernetes.io/metadata.name": "kube-system"}, false},
		"runtime, kubernetes-dashboard":              {false, labels.Set{"gardener.cloud/role": "x", "kubernetes.io/metadata.name": "kubernetes-dashboard"}, false},
		"shoot, kube-system":                         {true, labels.Set{"kubernetes.io/metadata.name": "kube-system"}, true},
		"shoot, kubernetes-dashboard":                {true, labels.Set{"kubernetes.io/metadata.name": "kubernetes-dashboard"}, true},
		"shoot, any other, whatever role it may say": {true, labels.Set{"gardener.cloud/role": "x", "kubernetes.io/metadata.name": "default"}, false},
	} {
		selector, err := metav1.LabelSelectorAsSelector(Installation{Shoot: c.shoot}.Namespaces())
		must.Succeed(t, err)
		expect.Equal(t, selector.Matches(c.namespace), c.want, "DEP-10/%s", name)
	}
	got := (Installation{Shoot: true}).Objects()["resources.gardener.cloud/managed-by"]
	expect.True(t, got == "gardener" && (Installation{}).Objects() == nil, "A14: got %s", got)
}

// TestEntry: what the entries have in common (DEP-3, DEP-4, DEP-5).
func TestEntry(t *testing.T) {
	entry := PodEntry("x", nil, Select(map[string]string{"a": "b"}, Without("c")))
	expect.DeepEqual(t, entry.ObjectSelector.MatchExpressions, []metav1.LabelSelectorRequirement{Without("c"), NotIn("static-pod", "true")}, "DEP-4")
	if entry.Name != "x.resources.gardener.cloud" || *entry.FailurePolicy != admissionregistrationv1.Fail || *entry.MatchPolicy != admissionregistrationv1.Exact ||
		*entry.SideEffects != admissionregistrationv1.SideEffectClassNone || *entry.TimeoutSeconds != 10 || entry.ReinvocationPolicy != nil ||
		!cmp.Equal(entry.AdmissionReviewVersions, []string{"v1beta1", "v1"}) {
		t.Errorf("DEP-3/DEP-5: got %+v", entry)
	}
	expect.Equal(t, len(PodEntry("x", nil, nil).ObjectSelector.MatchExpressions), 1, "DEP-4")
	if got := Entry("x", nil, nil, OnCreateAndUpdate("g", "v", "r")).Rules[0]; len(got.Operations) != 2 || got.APIGroups[0] != "g" || got.APIVersions[0] != "v" || got.Resources[0] != "r" {
		t.Errorf("got %+v", got)
	}
}
