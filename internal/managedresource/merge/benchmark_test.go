package merge

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/test/must"
)

// The engine merges and compares each object that it reads: run with -bench . -benchmem -count 6 and compare with benchstat.
func BenchmarkMergeAndEqual(b *testing.B) {
	for name, texts := range map[string][2]string{
		"ConfigMap":  {benchConfigMap, benchConfigMapLive},
		"Deployment": {benchDeployment, benchDeploymentLive},
	} {
		b.Run(name, func(b *testing.B) {
			desired, live := desiredFrom(b, texts[0]), fromYAML(b, texts[1])
			options := Options{Origin: "n/m"}
			unstructured.RemoveNestedField(live.Object, "metadata", "annotations")
			live.SetAnnotations(Merge(desired, live, options).GetAnnotations())
			b.ReportAllocs()
			for b.Loop() {
				must.True(b, Equal(live, Merge(desired, live, options)), "differs")
			}
		})
	}
}

const benchConfigMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: n, labels: {app: web, resources.gardener.cloud/managed-by: gardener}}
data: {a: one, b: two, c: three, d: four}
`

const benchConfigMapLive = benchConfigMap

const benchDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: n, labels: {app: web, resources.gardener.cloud/managed-by: gardener}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      containers:
      - name: web
        image: registry.example.org/web:1.2.3
        args: [--port=8080, --verbose]
        env:
        - {name: MODE, value: fast}
        - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        ports: [{name: http, containerPort: 8080}]
        resources: {requests: {cpu: 1000m, memory: 64Mi}, limits: {memory: 128Mi}}
        livenessProbe: {httpGet: {path: /healthz, port: 8080}, initialDelaySeconds: 5}
        readinessProbe: {httpGet: {path: /readyz, port: http}}
        volumeMounts: [{name: config, mountPath: /etc/web}, {name: tmp, mountPath: /tmp}]
      volumes:
      - {name: config, configMap: {name: web}}
      - {name: tmp, emptyDir: {}}
`

const benchDeploymentLive = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
  namespace: n
  uid: 00000000-0000-0000-0000-000000000001
  resourceVersion: "7"
  generation: 1
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {app: web, resources.gardener.cloud/managed-by: gardener}
spec:
  replicas: 2
  progressDeadlineSeconds: 600
  revisionHistoryLimit: 10
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {creationTimestamp: null, labels: {app: web}}
    spec:
      serviceAccount: web
      serviceAccountName: web
      dnsPolicy: ClusterFirst
      restartPolicy: Always
      schedulerName: default-scheduler
      securityContext: {}
      terminationGracePeriodSeconds: 30
      containers:
      - name: web
        image: registry.example.org/web:1.2.3
        imagePullPolicy: IfNotPresent
        args: [--port=8080, --verbose]
        env:
        - {name: MODE, value: fast}
        - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name, apiVersion: v1}}}
        ports: [{name: http, containerPort: 8080, protocol: TCP}]
        resources: {requests: {cpu: "1", memory: 64Mi}, limits: {memory: 128Mi}}
        livenessProbe: {httpGet: {path: /healthz, port: 8080, scheme: HTTP}, initialDelaySeconds: 5, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
        readinessProbe: {httpGet: {path: /readyz, port: http, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
        terminationMessagePath: /dev/termination-log
        terminationMessagePolicy: File
        volumeMounts: [{name: config, mountPath: /etc/web}, {name: tmp, mountPath: /tmp}]
      volumes:
      - {name: config, configMap: {name: web, defaultMode: 420}}
      - {name: tmp, emptyDir: {}}
status: {replicas: 2, readyReplicas: 2, updatedReplicas: 2, availableReplicas: 2, observedGeneration: 1}
`
