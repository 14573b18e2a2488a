package merge

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// livePod is a Pod after admission, the scheduler and a webhook that adds containers.
const livePod = `
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: n, uid: u, resourceVersion: "7", labels: {app: web}}
spec:
  nodeName: node-1
  priority: 0
  serviceAccountName: default
  serviceAccount: default
  enableServiceLinks: true
  restartPolicy: Always
  preemptionPolicy: PreemptLowerPriority
  activeDeadlineSeconds: 100
  tolerations:
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
  containers:
  - name: web
    image: web:1
    imagePullPolicy: IfNotPresent
    env: [{name: A, value: "1.3"}, {name: INJECTED, value: x}]
    resources: {limits: {cpu: "1"}, requests: {cpu: "1", memory: 1Mi}}
    ports: [{containerPort: 80, hostPort: 80, protocol: TCP}]
    volumeMounts: [{name: kube-api-access, mountPath: /var/run/secrets, readOnly: true}]
  - {name: injected, image: "side:1"}
  volumes: [{name: kube-api-access, projected: {sources: []}}]
status: {phase: Running}
`

func podManifest(t *testing.T, spec string) *plan.Desired {
	t.Helper()
	return desiredFrom(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: n, labels: {app: web}}\nspec: "+spec+"\n")
}

// Issue: each change of a Pod's status led to an update that was refused.
func TestMerge_ChangesOfPods(t *testing.T) {
	for name, tc := range map[string]struct {
		spec    string
		differs string // The first difference, or none.
		refused string // The field that can't be changed, or none.
	}{
		"what was filled in and added stays":     {spec: "{containers: [{name: web, image: 'web:1', env: [{name: A, value: '1.3'}], resources: {limits: {cpu: 1000m}}, ports: [{containerPort: 80}]}]}"},
		"a Pod without containers":               {spec: "{}"},
		"another image":                          {spec: "{containers: [{name: web, image: 'web:2'}]}", differs: "spec.containers[web].image"},
		"an image of a container that was added": {spec: "{containers: [{name: injected, image: 'side:2'}]}", differs: "spec.containers[injected].image"},
		"a shorter deadline":                     {spec: "{activeDeadlineSeconds: 50}", differs: "spec.activeDeadlineSeconds"},
		"a longer deadline":                      {spec: "{activeDeadlineSeconds: 200}", differs: "spec.activeDeadlineSeconds", refused: "spec.activeDeadlineSeconds"},
		"one more toleration":                    {spec: "{tolerations: [{key: a, operator: Exists}]}", differs: "spec.tolerations"},
		"a toleration that is there":             {spec: "{tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]}"},
		"an environment variable":                {spec: "{containers: [{name: web, image: 'web:2', env: [{name: A, value: '1.30'}]}]}", differs: "spec.containers[web]", refused: "spec.containers[web].env[A].value"},
		"one more container":                     {spec: "{containers: [{name: more, image: x}]}", differs: "spec.containers", refused: "spec.containers"},
		"another policy":                         {spec: "{restartPolicy: Never}", differs: "spec.restartPolicy", refused: "spec.restartPolicy"},
		"resources":                              {spec: "{containers: [{name: web, resources: {requests: {cpu: 500m}}}]}", differs: "spec.containers[web].resources.requests.cpu", refused: "spec.containers[web].resources.requests.cpu"},
		"gates are taken away by others":         {spec: "{schedulingGates: [{name: a}]}"},
	} {
		t.Run(name, func(t *testing.T) {
			live := fromYAML(t, livePod)
			before := live.DeepCopy()
			desired := podManifest(t, tc.spec)
			merged := Merge(desired, live, Options{Origin: "n/m"})
			live.SetAnnotations(merged.GetAnnotations())
			before.SetAnnotations(merged.GetAnnotations())
			if got := Difference(live, merged); got != tc.differs && (tc.differs == "" || !strings.HasPrefix(got, tc.differs)) {
				t.Errorf("differs at %q, want %q", got, tc.differs)
			}
			err := CheckUpdate(live, merged)
			must.Equal(t, err != nil, tc.refused != "", "refused: %v, want %q", err, tc.refused)
			if err != nil && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.refused+":") || strings.Contains(err.Error(), "1.3")) {
				t.Errorf("got error %v", err)
			}
			expect.True(t, Equal(before, live) && unstructuredEqual(before, live), "the live Pod was changed")
			if again := Merge(desired, merged, Options{Origin: "n/m"}); !Equal(merged, again) {
				t.Errorf("not idempotent at %s", Difference(merged, again))
			}
		})
	}
}

// A manifest that says all of a live Pod's spec, as one that was exported does, takes nothing away from it, nor from what is at hand.
func TestMerge_KeepsExportedPod(t *testing.T) {
	gated := strings.Replace(livePod, "spec:\n", "spec:\n  schedulingGates: [{name: example.org/wait}]\n  ephemeralContainers: [{name: debug, image: d}]\n", 1)
	live, before, desired := fromYAML(t, gated), fromYAML(t, gated), desiredFrom(t, gated)
	desired.SetLabels(map[string]string{"new": "label"})
	merged := Merge(desired, live, Options{Origin: "n/m"})
	expect.True(t, unstructuredEqual(before, live), "the live Pod was changed")
	path := Difference(live, merged)
	expect.True(t, strings.HasPrefix(path, "metadata"), "differs at %q", path)
	for _, field := range []string{"schedulingGates", "ephemeralContainers"} {
		list, _, _ := unstructured.NestedSlice(merged.Object, "spec", field)
		expect.Equal(t, len(list), 1, "the Pod is to lose its %s", field)
	}
}

func TestCheckUpdateLeavesOtherKindsToTheAPIServer(t *testing.T) {
	live := fromYAML(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {completions: 1}\n")
	merged := fromYAML(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {completions: 2}\n")
	expect.Succeed(t, CheckUpdate(live, merged))
}

func unstructuredEqual(a, b *unstructured.Unstructured) bool {
	rawA, errA := a.MarshalJSON()
	rawB, errB := b.MarshalJSON()
	return errA == nil && errB == nil && string(rawA) == string(rawB)
}
