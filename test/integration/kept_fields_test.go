package integration

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
)

const (
	deploymentHead = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: $NAME, namespace: $NS, annotations: {resources.gardener.cloud/preserve-resources: 'true', resources.gardener.cloud/preserve-replicas: 'true'}}, spec: {selector: {matchLabels: {a: b}}, "
	podMeta        = "metadata: {labels: {a: b}}"
	serviceHead    = "{apiVersion: v1, kind: Service, metadata: {name: $NAME, namespace: $NS}, spec: {selector: {a: b}, "
	claimHead      = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: $NAME, namespace: $NS}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}"
	volumeHead     = "{apiVersion: v1, kind: PersistentVolume, metadata: {name: $NS-$NAME}, spec: {accessModes: [ReadWriteOnce], hostPath: {path: /x}, "
	setHead        = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: $NAME, namespace: $NS}, spec: {replicas: 0, serviceName: s, selector: {matchLabels: {a: b}}, template: {" + podMeta + ", spec: {containers: [{name: c, image: 'i:1'}]}}"
	jobHead        = "{apiVersion: batch/v1, kind: Job, metadata: {name: $NAME, namespace: $NS}, spec: {suspend: true, completions: 1, template: {spec: {restartPolicy: Never, containers: [{name: c, image: 'i:1'}]}}"
	ingressHead    = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: $NAME, namespace: $NS}, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}"
	roleHead       = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: $NS-$NAME}, "
	ports          = "ports: [{name: p, port: 80}]"
)

// keptFields are, for each rule of a kind that keeps a live value, manifests that follow one another: with the structure around the value, without it,
// and with another member of the union around it; by is a change of another writer after the first one.
var keptFields = map[string]struct {
	first, by string
	then      []string
}{
	"MRM-1: replicas": {deploymentHead + "replicas: 0, template: {" + podMeta + ", spec: {containers: [{name: c, image: 'i:1'}]}}}}", "{spec: {replicas: 1}}", []string{
		deploymentHead + "template: {" + podMeta + ", spec: {containers: [{name: c, image: 'i:2'}]}}}}",
		deploymentHead + "replicas: 0, strategy: {type: Recreate}, template: {" + podMeta + ", spec: {containers: [{name: c, image: 'i:3'}]}}}}",
	}},
	"MRM-3: resources of containers": {deploymentHead + "replicas: 0, template: {" + podMeta + ", spec: {containers: [{name: c, image: 'i:1', resources: {requests: {cpu: 1}}}]}}}}",
		"{spec: {template: {spec: {containers: [{name: c, image: 'i:1', resources: {requests: {cpu: 2}, limits: {cpu: 3}}}]}}}}", []string{
			deploymentHead + "replicas: 0, template: {" + podMeta + ", spec: {containers: [{name: c, image: 'i:2', resources: {limits: {cpu: 1}}}]}}}}",
			deploymentHead + "replicas: 0, template: {" + podMeta + ", spec: {containers: [{name: c, image: 'i:3'}]}}}}",
			deploymentHead + "replicas: 0, template: {" + podMeta + ", spec: {resources: {limits: {cpu: 4}}, containers: [{name: c, image: 'i:4'}]}}}}",
			deploymentHead + "replicas: 0, template: {" + podMeta + ", spec: {containers: [{name: d, image: 'i:5', resources: {limits: {cpu: 1}}}]}}}}",
		}},
	"MRM-3: resources of a Pod template": {deploymentHead + "replicas: 0, template: {" + podMeta + ", spec: {resources: {limits: {cpu: 2}}, containers: [{name: c, image: 'i:1', resources: {limits: {cpu: 1}}}]}}}}",
		"{spec: {template: {spec: {resources: {limits: {cpu: 4}}}}}}", []string{
			deploymentHead + "replicas: 0, template: {" + podMeta + ", spec: {resources: {limits: {cpu: 3}}, containers: [{name: c, image: 'i:2'}]}}}}",
			deploymentHead + "replicas: 0, template: {" + podMeta + ", spec: {containers: [{name: c, image: 'i:3'}]}}}}",
		}},
	"MRM-4: volumeClaimTemplates": {setHead + ", volumeClaimTemplates: [{metadata: {name: v}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}", "{metadata: {labels: {x: z}}}", []string{
		setHead + ", volumeClaimTemplates: [{metadata: {name: v}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}]}}",
		setHead + "}}",
		setHead + ", updateStrategy: {type: OnDelete}}}",
	}},
	"MRM-6: selector of a Job": {jobHead + "}}", "{metadata: {labels: {x: z}}}", []string{
		jobHead + ", parallelism: 2}}",
		jobHead + ", completionMode: NonIndexed, backoffLimit: 3}}",
	}},
	"MRM-8: a Service becomes internal": {serviceHead + "type: NodePort, " + ports + "}}", "{spec: {externalTrafficPolicy: Local}}", []string{
		serviceHead + "type: NodePort, ports: [{name: q, port: 80}, {name: r, port: 81}]}}",
		serviceHead + "type: ClusterIP, " + ports + "}}",
		serviceHead + ports + ", internalTrafficPolicy: Local}}",
	}},
	"MRM-12: a Service becomes external": {serviceHead + ports + "}}", "{spec: {sessionAffinity: ClientIP}}", []string{
		serviceHead + "type: ExternalName, externalName: example.org}}",
		serviceHead + "type: ClusterIP, " + ports + "}}",
		serviceHead + "type: LoadBalancer, externalTrafficPolicy: Local, " + ports + "}}",
		serviceHead + "type: LoadBalancer, externalTrafficPolicy: Cluster, allocateLoadBalancerNodePorts: false, " + ports + "}}",
		serviceHead + "type: NodePort, " + ports + "}}",
		serviceHead + "type: ClusterIP, ipFamilyPolicy: SingleStack, " + ports + "}}",
	}},
	"MRM-12: a Service of a class": {serviceHead + "type: LoadBalancer, loadBalancerClass: example.org/a, " + ports + "}}", "{metadata: {labels: {x: z}}}", []string{
		serviceHead + "type: LoadBalancer, " + ports + "}}",
		serviceHead + "type: ClusterIP, " + ports + "}}",
	}},
	"MRM-15: the class of a claim": {claimHead + ", storageClassName: kept-fields}}", "{metadata: {labels: {x: z}}}", []string{
		claimHead + "}}",
		claimHead + ", volumeMode: Filesystem}}",
	}},
	"MRM-15: the claim of a volume": {volumeHead + "capacity: {storage: 1Gi}}}", "{spec: {claimRef: {namespace: default, name: c, uid: u}}}", []string{
		volumeHead + "capacity: {storage: 2Gi}}}",
		volumeHead + "capacity: {storage: 2Gi}, claimRef: {namespace: default, name: c}, persistentVolumeReclaimPolicy: Delete}}",
	}},
	"MRM-15: the class of an Ingress": {ingressHead + ", ingressClassName: a}}", "{metadata: {labels: {x: z}}}", []string{
		ingressHead + "}}",
		strings.Replace(ingressHead, "namespace: $NS", "namespace: $NS, annotations: {kubernetes.io/ingress.class: b}", 1) + "}}",
	}},
	"MRM-15: collected rules": {roleHead + "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}", "{rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}", []string{
		roleHead + "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: c}}]}}",
		roleHead + "rules: [{apiGroups: [''], resources: [pods], verbs: [list]}]}",
		roleHead + "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}",
	}},
	"MRM-14: secrets of a ServiceAccount": {"{apiVersion: v1, kind: ServiceAccount, metadata: {name: $NAME, namespace: $NS}}", "{secrets: [{name: s}], imagePullSecrets: [{name: p}]}", []string{
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: $NAME, namespace: $NS}, automountServiceAccountToken: false}",
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: $NAME, namespace: $NS}, imagePullSecrets: [{name: q}]}",
	}},
	"MRM-15: taints of a Node": {"{apiVersion: v1, kind: Node, metadata: {name: $NS-$NAME}, spec: {providerID: x, taints: [{key: a, effect: NoSchedule}]}}", "{spec: {podCIDR: 10.0.0.0/24, podCIDRs: [10.0.0.0/24], taints: [{key: node.kubernetes.io/unreachable, effect: NoSchedule}]}}", []string{
		"{apiVersion: v1, kind: Node, metadata: {name: $NS-$NAME}, spec: {unschedulable: true}}",
		"{apiVersion: v1, kind: Node, metadata: {name: $NS-$NAME}, spec: {taints: [{key: b, effect: NoExecute}]}}",
	}},
}

// TestKeptFields shows that the result of each rule that keeps a live value is accepted by the API server, and that the next run writes nothing.
func TestKeptFields(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	i := 0
	for name, c := range keptFields {
		i++
		object := fmt.Sprintf("kept-%d", i)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := *f
			f.TB = t
			manifest := func(text string) map[string]string {
				return map[string]string{"data.yaml": strings.ReplaceAll(text, "$NAME", object)}
			}
			f.secret(object, manifest(c.first))
			f.must(f.seed.Create(f.ctx, harness.ManagedResource(f.ns, object, object)))
			f.applied(object, "True/ApplySucceeded")
			live := &unstructured.Unstructured{}
			f.must(yaml.Unmarshal([]byte(strings.NewReplacer("$NAME", object, "$NS", f.ns).Replace(c.first)), &live.Object))
			var patch map[string]any
			f.must(yaml.Unmarshal([]byte(c.by), &patch))
			f.patch(live, patch)
			for _, text := range c.then {
				f.reapplies(object, live, manifest(text))
			}
		})
	}
}

// reapplies changes the manifest of an object, and shows that it is applied, and that a further run does not write it.
func (f *fixture) reapplies(name string, live *unstructured.Unstructured, manifest map[string]string) {
	f.Helper()
	checksum := *f.mr(name).Status.SecretsDataChecksum
	f.secret(name, manifest)
	f.eventually(func() error {
		mr := f.mr(name)
		got, message := harness.Condition(mr, resourcesv1alpha1.ResourcesApplied)
		if got != "True/ApplySucceeded" || *mr.Status.SecretsDataChecksum == checksum {
			return fmt.Errorf("%s: the result is %s: %s", manifest["data.yaml"], got, message)
		}
		return nil
	})
	f.must(f.shoot.Get(f.ctx, client.ObjectKeyFromObject(live), live))
	f.annotateMR(name, resourcesv1alpha1.AnnotationOperation, resourcesv1alpha1.OperationReconcile)
	f.eventually(func() error {
		if _, found := f.mr(name).Annotations[resourcesv1alpha1.AnnotationOperation]; found {
			return fmt.Errorf("no full run takes place")
		}
		return nil
	})
	f.applied(name, "True/ApplySucceeded")
	// Kinds without generations have no controller that writes their status here.
	version := func() string {
		if live.GetGeneration() > 0 {
			return fmt.Sprint("generation ", live.GetGeneration())
		}
		return "version " + live.GetResourceVersion()
	}
	before := version()
	f.must(f.shoot.Get(f.ctx, client.ObjectKeyFromObject(live), live))
	if got := version(); got != before {
		f.Errorf("%s: the second run wrote %s of the object, want %s", manifest["data.yaml"], got, before)
	}
}
