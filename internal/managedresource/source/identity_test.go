package source

import (
	"errors"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestClusterID reads the identity of the source from each form of its ConfigMap.
func TestClusterID(t *testing.T) {
	const fromCluster, byDefault = "<cluster>", "<default>"
	const prefix = "unable to determine cluster id: cannot determine cluster identity from configmap: "
	for name, tc := range map[string]struct {
		configured string
		data       map[string]string // nil means that there is no ConfigMap.
		unread     bool
		want, err  string
		final      bool
	}{
		"MRC-6/BH-MR-34 empty":                    {configured: "", data: map[string]string{ClusterIdentity: "id"}, want: ""},
		"MRC-6/BH-MR-31 a name":                   {configured: "name", data: map[string]string{ClusterIdentity: "id"}, want: "name"},
		"MRC-7c/BH-MR-32 the identity":            {configured: fromCluster, data: map[string]string{ClusterIdentity: "id"}, want: "id"},
		"MRC-7c/an empty identity":                {configured: fromCluster, data: map[string]string{ClusterIdentity: ""}, want: ""},
		"MRC-7c/BH-MR-33 the identity by default": {configured: byDefault, data: map[string]string{ClusterIdentity: "id"}, want: "id"},
		"MRC-7a/BH-MR-32 no ConfigMap":            {configured: fromCluster, err: prefix + `configmaps "cluster-identity" not found`, final: true},
		"MRC-7a/no key":                           {configured: fromCluster, data: map[string]string{}, err: prefix + "no cluster-identity entry", final: true},
		"MRC-7b/BH-MR-33 no ConfigMap":            {configured: byDefault, want: ""},
		"MRC-7b/no key":                           {configured: byDefault, data: map[string]string{}, want: ""},
		"MRC-6/it can't be read":                  {configured: byDefault, unread: true, err: prefix + `unknown (get configmaps)`},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			if tc.data != nil {
				objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: ClusterIdentity}, Data: tc.data})
			}
			client := fake.NewClientset(objects...)
			if tc.unread {
				client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewGenericServerResponse(http.StatusTeapot, "get", corev1.Resource("configmaps"), "", "", 0, false)
				})
			}
			got, err := ClusterID(t.Context(), client.CoreV1(), tc.configured)
			text := ""
			if err != nil {
				text = err.Error()
			}
			var final *IdentityError
			if got != tc.want || len(tc.err) > 0 != (err != nil) || !tc.unread && text != tc.err || errors.As(err, &final) != tc.final {
				t.Errorf("got %q and error %q, want %q and %q", got, text, tc.want, tc.err)
			}
		})
	}
}
