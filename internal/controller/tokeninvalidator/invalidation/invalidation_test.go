package invalidation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/test/expect"
)

func account(automount *bool, labels ...string) *corev1.ServiceAccount {
	a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"own": "x"}, Annotations: map[string]string{"a": "b"}}, AutomountServiceAccountToken: automount, Secrets: []corev1.ObjectReference{{Name: "s"}}}
	for _, label := range labels {
		a.Labels[label] = ""
	}
	return a
}

func TestWanted(t *testing.T) {
	for name, tc := range map[string]struct {
		account *corev1.ServiceAccount
		want    bool
	}{
		"TI-6/nil": {account(nil), false}, "TI-6/true": {account(ptr.To(true)), false}, "TI-6/BH-TI-1, false": {account(ptr.To(false)), true},
		"TI-6/BH-TI-5, skipped, whatever the value": {account(ptr.To(false), LabelSkip), false}, "TI-6/true, skipped": {account(ptr.To(true), LabelSkip), false},
	} {
		expect.Equal(t, Wanted(tc.account), tc.want, "%s", name)
		tc.account.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "x"}}
		Strip(tc.account)
		expect.True(t, tc.account.ImagePullSecrets == nil, "%s: what pulls images is kept in memory", name)
		if got := Wanted(tc.account); got != tc.want || len(tc.account.Secrets) != 1 || tc.account.Annotations != nil {
			t.Errorf("%s, stripped: got %v, %+v", name, got, tc.account)
		}
	}
}

func TestChanged(t *testing.T) {
	all := []*corev1.ServiceAccount{account(nil), account(ptr.To(true)), account(ptr.To(false)), account(nil, LabelSkip), account(ptr.To(false), LabelSkip)}
	for i, before := range all {
		for j, after := range all {
			expect.Equal(t, Changed(before, after), (i != j), "TI-2: from %d to %d", i, j)
		}
	}
	other := account(nil)
	other.Labels["own"], other.ImagePullSecrets = "y", []corev1.LocalObjectReference{{Name: "x"}}
	expect.False(t, Changed(account(nil), other), "TI-2: something else has changed")
}

func TestInUse(t *testing.T) {
	volume := func(source corev1.VolumeSource) corev1.PodSpec {
		return corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: source}}}
	}
	from := []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want bool
	}{
		"TI-8/volume":           {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}), true},
		"TI-8/another Secret":   {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "x"}}), false},
		"TI-8/a ConfigMap":      {volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}), false},
		"3.4/projected":         {volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}}}), true},
		"3.4/an init container": {corev1.PodSpec{InitContainers: []corev1.Container{{EnvFrom: from}}}, true},
		"3.4/an environment":    {corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: from}}}, true},
	} {
		pods := []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, {ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: tc.spec}}
		expect.Equal(t, InUse("s", pods) == "p", tc.want, "%s", name)
	}
}

func TestLabelled(t *testing.T) {
	for name, tc := range map[string]struct {
		labels   map[string]string
		consider bool
		want     map[string]string
		differ   bool
	}{
		"TI-5/none":                  {nil, false, map[string]string{LabelPurpose: Purpose}, true},
		"TI-5/another purpose stays": {map[string]string{LabelPurpose: "x"}, false, map[string]string{LabelPurpose: "x"}, false},
		"TI-9":                       {map[string]string{LabelPurpose: Purpose, "own": "x"}, true, map[string]string{LabelPurpose: Purpose, LabelConsider: "true", "own": "x"}, true},
		"TI-7":                       {map[string]string{LabelPurpose: Purpose, LabelConsider: "false"}, true, map[string]string{LabelPurpose: Purpose, LabelConsider: "false"}, false},
		"TI-6":                       {map[string]string{LabelPurpose: Purpose, LabelConsider: "x"}, false, map[string]string{LabelPurpose: Purpose}, true},
	} {
		got, differ := Labelled(tc.labels, tc.consider)
		diff := cmp.Diff(tc.want, got)
		expect.True(t, diff == "" && differ == tc.differ, "%s: differ %v, %s", name, differ, diff)
	}
}
