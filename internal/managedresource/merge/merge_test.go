package merge

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func fromYAML(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	result := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	must.Succeed(t, err)
	must.Succeed(t, result.UnmarshalJSON(raw))
	return result
}

func desiredFrom(t testing.TB, text string) *plan.Desired {
	t.Helper()
	o := fromYAML(t, text)
	return &plan.Desired{Unstructured: o, Ref: objects.Ref{ID: objects.IDOf(o)}}
}

func TestMergeStrings_KeepsWhatIsTheirs(t *testing.T) {
	type m = map[string]string
	for name, tc := range map[string]struct {
		live, desired, old, want m
		force                    bool
	}{
		"MRL-6/theirs stays":                    {live: m{"foo": "bar"}, desired: m{"other": "baz"}, want: m{"foo": "bar", "other": "baz"}},
		"MRL-6/ours goes":                       {live: m{"foo": "bar"}, desired: m{"other": "baz"}, old: m{"foo": "bar"}, want: m{"other": "baz"}},
		"MRL-6/ours, changed by them":           {live: m{"foo": "changed"}, desired: m{"other": "baz"}, old: m{"foo": "bar"}, want: m{"foo": "changed", "other": "baz"}},
		"MRL-8/force":                           {live: m{"foo": "bar"}, desired: m{"other": "baz"}, force: true, want: m{"other": "baz"}},
		"MRL-6/still wanted":                    {live: m{"foo": "x"}, desired: m{"foo": "new"}, old: m{"foo": "x"}, want: m{"foo": "new"}},
		"MRL-6/an empty value is no other than": {live: m{}, desired: m{}, old: m{"foo": ""}, want: m{}},
	} {
		t.Run(name, func(t *testing.T) {
			expect.DeepEqual(t, mergeStrings(tc.live, tc.desired, tc.old, tc.force), tc.want)
		})
	}
}

// BH-MR-28, MRM-5: kind and annotation decide which live fields stay.
func TestMerge_FollowsKindAndAnnotations(t *testing.T) {
	const deploy = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: n%s}\nspec: %s\n"
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: n}\nspec: %s\n"
	for name, tc := range map[string]struct {
		desired, live string
		options       Options
		want          map[string]string // path → value
	}{
		"MRL-7/no labels": {desired: "apiVersion: x/v1\nkind: X\nmetadata: {name: c}\n", live: "apiVersion: x/v1\nkind: X\nmetadata: {name: c, labels: {a: b}}\n", options: Options{ForceOverwriteLabels: true},
			want: map[string]string{"metadata.labels": "<nil>"}},
		"MRL-16/version and kind": {desired: "apiVersion: x/v2\nkind: X\nmetadata: {name: c}\nspec: a\n", live: "apiVersion: x/v1\nkind: Z\nmetadata: {name: c}\nspec: b\n", options: Options{},
			want: map[string]string{"apiVersion": "x/v2", "kind": "X", "spec": "a"}},
		"MRM-5/BH-MR-28/DaemonSet": {desired: "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d, annotations: {resources.gardener.cloud/preserve-resources: 'true'}}\nspec: {template: {spec: {containers: [{name: a, resources: {limits: {cpu: 1}}}]}}}\n",
			live: "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\nspec: {template: {metadata: {annotations: {kubectl.kubernetes.io/restartedAt: now}}, spec: {containers: [{name: a, resources: {limits: {cpu: 7}}}]}}}\n",
			want: map[string]string{"spec.template.spec.containers": "[map[name:a resources:map[limits:map[cpu:7]]]]", "spec.template.metadata.annotations": "map[kubectl.kubernetes.io/restartedAt:now]"}},
		"MRM-1/replicas unset": {desired: fmt.Sprintf(deploy, "", "{}"), live: fmt.Sprintf(deploy, "", "{replicas: 3}"), want: map[string]string{"spec.replicas": "3"}},
		"MRM-1/replicas set":   {desired: fmt.Sprintf(deploy, "", "{replicas: 1}"), live: fmt.Sprintf(deploy, "", "{replicas: 3}"), want: map[string]string{"spec.replicas": "1"}},
		"MRM-1/MR-21/scaled":   {desired: fmt.Sprintf(deploy, "", "{replicas: 1}"), live: fmt.Sprintf(deploy, "", "{replicas: 3}"), options: Options{HorizontallyScaled: true}, want: map[string]string{"spec.replicas": "3"}},
		"MRM-1/preserve-replicas, literally true": {desired: fmt.Sprintf(deploy, ", annotations: {resources.gardener.cloud/preserve-replicas: 'true'}", "{replicas: 1}"),
			live: fmt.Sprintf(deploy, "", "{replicas: 3}"), want: map[string]string{"spec.replicas": "3"}},
		"MRM-1/preserve-replicas, something else": {desired: fmt.Sprintf(deploy, ", annotations: {resources.gardener.cloud/preserve-replicas: '1'}", "{replicas: 1}"),
			live: fmt.Sprintf(deploy, "", "{replicas: 3}"), want: map[string]string{"spec.replicas": "1"}},
		"MRM-2/restartedAt, also over a desired one": {
			desired: fmt.Sprintf(deploy, "", "{template: {metadata: {annotations: {kubectl.kubernetes.io/restartedAt: old}}}}"),
			live:    fmt.Sprintf(deploy, "", "{template: {metadata: {annotations: {kubectl.kubernetes.io/restartedAt: new}}}}"),
			want:    map[string]string{"spec.template.metadata.annotations": "map[kubectl.kubernetes.io/restartedAt:new]"}},
		"MRM-3/R10 preserve-resources, init containers too": {
			desired: fmt.Sprintf(deploy, ", annotations: {resources.gardener.cloud/preserve-resources: 'true'}",
				"{template: {spec: {containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi}}}, {name: new, resources: {requests: {cpu: 5}}}], initContainers: [{name: i, resources: {limits: {cpu: 1}}}]}}}"),
			live: fmt.Sprintf(deploy, "", "{template: {spec: {containers: [{name: a, resources: {requests: {cpu: 2}, claims: [{name: x}]}}], initContainers: [{name: i, resources: {limits: {cpu: 9}}}]}}}"),
			want: map[string]string{
				"spec.template.spec": "map[containers:[map[name:a resources:map[claims:[map[name:x]] requests:map[cpu:2]]] map[name:new resources:map[requests:map[cpu:5]]]] initContainers:[map[name:i resources:map[limits:map[cpu:9]]]]]"}},
		"MRM-4/volumeClaimTemplates": {desired: "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}\nspec: {volumeClaimTemplates: [new]}\n", live: "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}\nspec: {volumeClaimTemplates: [old]}\n",
			want: map[string]string{"spec.volumeClaimTemplates": "[old]"}},
		"MRM-6/Job": {desired: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {metadata: {labels: {a: b, job-name: x}}}}\n",
			live: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {selector: {matchLabels: {u: v}}, template: {metadata: {labels: {controller-uid: u, job-name: j}}}}\n",
			want: map[string]string{"spec.selector": "map[matchLabels:map[u:v]]", "spec.template.metadata.labels": "map[a:b controller-uid:u job-name:x]"}},
		"MRM-7/CronJob v1beta1": {desired: "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: j, annotations: {resources.gardener.cloud/preserve-resources: 'true'}}\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, resources: {limits: {cpu: 1}}}]}}}}}\n",
			live: "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: j}\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, resources: {limits: {cpu: 7}}}]}}}}}\n",
			want: map[string]string{"spec.jobTemplate.spec.template.spec.containers": "[map[name:a resources:map[limits:map[cpu:7]]]]"}},
		"MRM-12/clusterIP":                      {desired: fmt.Sprintf(service, "{clusterIP: 5.6.7.8}"), live: fmt.Sprintf(service, "{clusterIP: 1.2.3.4, clusterIPs: [1.2.3.4]}"), want: map[string]string{"spec.clusterIP": "1.2.3.4", "spec.clusterIPs": "[1.2.3.4]"}},
		"MRM-12/None":                           {desired: fmt.Sprintf(service, "{clusterIP: None}"), live: fmt.Sprintf(service, "{clusterIP: 1.2.3.4}"), want: map[string]string{"spec.clusterIP": "None"}},
		"MRM-12/live ExternalName":              {desired: fmt.Sprintf(service, "{clusterIP: 5.6.7.8}"), live: fmt.Sprintf(service, "{type: ExternalName, clusterIP: 1.2.3.4}"), want: map[string]string{"spec.clusterIP": "5.6.7.8"}},
		"MRM-11/desired ExternalName":           {desired: fmt.Sprintf(service, "{type: ExternalName, externalName: x}"), live: fmt.Sprintf(service, "{clusterIP: 1.2.3.4}"), want: map[string]string{"spec.clusterIP": "<nil>"}},
		"MRM-9/empty type":                      {desired: fmt.Sprintf(service, "{}"), live: fmt.Sprintf(service, "{}"), want: map[string]string{"spec.type": "ClusterIP"}},
		"MRM-10/node port by name":              {desired: fmt.Sprintf(service, "{type: NodePort, ports: [{name: a, port: 81}]}"), live: fmt.Sprintf(service, "{type: NodePort, ports: [{name: a, port: 80, nodePort: 333}]}"), want: map[string]string{"spec.ports": "[map[name:a nodePort:333 port:81]]"}},
		"MRM-10/node port by number":            {desired: fmt.Sprintf(service, "{type: LoadBalancer, ports: [{name: b, port: 80}]}"), live: fmt.Sprintf(service, "{type: NodePort, ports: [{name: a, port: 80, nodePort: 333}]}"), want: map[string]string{"spec.ports": "[map[name:b nodePort:333 port:80]]"}},
		"MRM-10/explicit node port":             {desired: fmt.Sprintf(service, "{type: NodePort, ports: [{port: 80, nodePort: 444}]}"), live: fmt.Sprintf(service, "{type: NodePort, ports: [{port: 80, nodePort: 333}]}"), want: map[string]string{"spec.ports": "[map[nodePort:444 port:80]]"}},
		"MRB-26/two protocols":                  {desired: fmt.Sprintf(service, "{type: NodePort, ports: [{port: 53}, {port: 53, protocol: UDP}]}"), live: fmt.Sprintf(service, "{type: NodePort, ports: [{port: 53, protocol: UDP, nodePort: 2}, {port: 53, protocol: TCP, nodePort: 1}]}"), want: map[string]string{"spec.ports": "[map[nodePort:1 port:53] map[nodePort:2 port:53 protocol:UDP]]"}},
		"MRM-10/loadBalancerIP":                 {desired: fmt.Sprintf(service, "{type: LoadBalancer}"), live: fmt.Sprintf(service, "{type: LoadBalancer, loadBalancerIP: 1.1.1.1, loadBalancerClass: c}"), want: map[string]string{"spec.loadBalancerIP": "1.1.1.1", "spec.loadBalancerClass": "c"}},
		"MRM-13/healthCheckNodePort":            {desired: fmt.Sprintf(service, "{type: LoadBalancer, externalTrafficPolicy: Local}"), live: fmt.Sprintf(service, "{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 7}"), want: map[string]string{"spec.healthCheckNodePort": "7"}},
		"MRM-13/healthCheckNodePort, not Local": {desired: fmt.Sprintf(service, "{type: LoadBalancer}"), live: fmt.Sprintf(service, "{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 7}"), want: map[string]string{"spec.healthCheckNodePort": "<nil>"}},
		"MRM-8/openstack, even when forced":     {desired: "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {}\n", live: "apiVersion: v1\nkind: Service\nmetadata: {name: s, annotations: {loadbalancer.openstack.org/load-balancer-id: x, other: z}}\nspec: {}\n", options: Options{ForceOverwriteAnnotations: true, Origin: "o"}, want: map[string]string{"metadata.annotations": fmt.Sprint(map[string]string{"loadbalancer.openstack.org/load-balancer-id": "x", resourcesv1alpha1.AnnotationOrigin: "o", resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.DescriptionValue})}},
		"MRM-8/unless the manifest sets it":     {desired: "apiVersion: v1\nkind: Service\nmetadata: {name: s, annotations: {loadbalancer.openstack.org/load-balancer-id: ours}}\nspec: {}\n", live: "apiVersion: v1\nkind: Service\nmetadata: {name: s, annotations: {loadbalancer.openstack.org/load-balancer-id: theirs, loadbalancer.openstack.org/load-balancer-address: a}}\nspec: {}\n", options: Options{Origin: "o"}, want: map[string]string{"metadata.annotations": fmt.Sprint(map[string]string{"loadbalancer.openstack.org/load-balancer-id": "ours", "loadbalancer.openstack.org/load-balancer-address": "a", resourcesv1alpha1.AnnotationOrigin: "o", resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.DescriptionValue})}},
		"MRM-14/ServiceAccount":                 {desired: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: s}\nsecrets: [{name: ours}]\n", live: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: s}\nsecrets: [{name: theirs}]\nimagePullSecrets: [{name: p}]\n", want: map[string]string{"secrets": "[map[name:theirs]]", "imagePullSecrets": "[map[name:p]]"}},
		"MR-27/the rest is replaced":            {desired: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n", live: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: x, more: y}\n", want: map[string]string{"data": "map[a:b]"}},
		"MRL-13/owners":                         {desired: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", live: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, ownerReferences: [x]}\n", want: map[string]string{"metadata.ownerReferences": "<nil>"}},
		"MRL-14/MRL-15/theirs in metadata and status": {desired: "apiVersion: x/v1\nkind: X\nmetadata: {name: c, finalizers: [ours], uid: z}\nstatus: {ours: yes}\n", live: "apiVersion: x/v1\nkind: X\nmetadata: {name: c, finalizers: [theirs], uid: u, resourceVersion: '7'}\nstatus: {theirs: 1}\n", options: Options{},
			want: map[string]string{"metadata.finalizers": "[theirs]", "metadata.uid": "u", "metadata.resourceVersion": "7", "status": "map[theirs:1]"}},
		"MRL-15/no live status":                          {desired: "apiVersion: x/v1\nkind: X\nmetadata: {name: c}\nstatus: {ours: yes}\n", live: "apiVersion: x/v1\nkind: X\nmetadata: {name: c}\n", want: map[string]string{"status": "<nil>"}},
		"MRL-9/GC-16/references":                         {desired: "apiVersion: v1\nkind: X\nmetadata: {name: c, annotations: {reference.resources.gardener.cloud/b: b}}\n", live: "apiVersion: v1\nkind: X\nmetadata: {name: c, annotations: {reference.resources.gardener.cloud/a: a}}\n", options: Options{Origin: "o"}, want: map[string]string{"metadata.annotations": fmt.Sprint(map[string]string{"reference.resources.gardener.cloud/b": "b", resourcesv1alpha1.AnnotationOrigin: "o", resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.DescriptionValue})}},
		"MRB-9/unknown fields stay":                      {desired: fmt.Sprintf(deploy, "", "{unheardOf: 1, template: {spec: {neither: 2}}}"), live: fmt.Sprintf(deploy, "", "{}"), want: map[string]string{"spec.unheardOf": "1", "spec.template.spec.neither": "2"}},
		"MRM-12/headless: everything that was allocated": {desired: fmt.Sprintf(service, "{clusterIP: None}"), live: fmt.Sprintf(service, "{clusterIP: None, clusterIPs: [None], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}"), want: map[string]string{"spec.clusterIPs": "[None]", "spec.ipFamilies": "[IPv4]", "spec.ipFamilyPolicy": "SingleStack"}},
		"MRM-15/what binds a volume stays": {desired: "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: p, labels: {new: label}}\nspec: {capacity: {storage: 1Gi}}\n", live: "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: p, annotations: {pv.kubernetes.io/bound-by-controller: 'yes', theirs: x}}\nspec: {claimRef: {name: c, namespace: ns, uid: z}}\n", options: Options{ForceOverwriteAnnotations: true, Origin: "o"},
			want: map[string]string{"spec.claimRef": "map[name:c namespace:ns uid:z]", "metadata.labels": "map[new:label]", "metadata.annotations": fmt.Sprint(map[string]string{"pv.kubernetes.io/bound-by-controller": "yes", resourcesv1alpha1.AnnotationOrigin: "o", resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.DescriptionValue})}},
		"MRM-15/a volume that the manifest reserves":                              {desired: "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: p}\nspec: {claimRef: {name: c, namespace: ns}}\n", live: "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: p}\nspec: {claimRef: {name: c, namespace: ns, uid: z}}\n", want: map[string]string{"spec.claimRef": "map[name:c namespace:ns uid:z]"}},
		"MRM-15/a volume that is to go to another":                                {desired: "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: p}\nspec: {claimRef: {name: d, namespace: ns}}\n", live: "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: p}\nspec: {claimRef: {name: c, namespace: ns, uid: z}}\n", want: map[string]string{"spec.claimRef": "map[name:d namespace:ns]"}},
		"MRM-15/what binds a claim stays":                                         {desired: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: {resources: {requests: {storage: 2Gi}}}\n", live: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: {volumeName: v, storageClassName: s, resources: {requests: {storage: 1Gi}}}\n", want: map[string]string{"spec.volumeName": "v", "spec.storageClassName": "s", "spec.resources": "map[requests:map[storage:2Gi]]"}},
		"MRM-15/a claim without class is not one that left its class out":         {desired: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: {storageClassName: ''}\n", live: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: {storageClassName: s}\n", want: map[string]string{"spec.storageClassName": ""}},
		"MRM-15/nothing fills in the class of attributes":                         {desired: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: {}\n", live: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: {volumeAttributesClassName: gold}\n", want: map[string]string{"spec.volumeAttributesClassName": "<nil>"}},
		"MRM-15/a token stays":                                                    {desired: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ntype: kubernetes.io/service-account-token\ndata: {extra: YQ==}\n", live: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ntype: kubernetes.io/service-account-token\ndata: {token: YQ==, namespace: YQ==, theirs: YQ==}\n", want: map[string]string{"data": "map[extra:YQ== namespace:YQ== token:YQ==]"}},
		"MRM-15/another Secret's token does not":                                  {desired: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n", live: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ntype: Opaque\ndata: {token: YQ==}\n", want: map[string]string{"data": "<nil>"}},
		"MRM-15/collected rules stay":                                             {desired: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\naggregationRule: {clusterRoleSelectors: []}\n", live: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: [a]\n", want: map[string]string{"rules": "[a]"}},
		"MRM-15/the class that an Ingress was created with stays":                 {desired: "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\nspec: {}\n", live: "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\nspec: {ingressClassName: live}\n", want: map[string]string{"spec.ingressClassName": "live"}},
		"MRM-15/unless the manifest of the Ingress names another":                 {desired: "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\nspec: {ingressClassName: ours}\n", live: "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\nspec: {ingressClassName: live}\n", want: map[string]string{"spec.ingressClassName": "ours"}},
		"MRM-15/or names it in the annotation of old":                             {desired: "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i, annotations: {kubernetes.io/ingress.class: ours}}\nspec: {}\n", live: "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\nspec: {ingressClassName: live}\n", want: map[string]string{"spec.ingressClassName": "<nil>"}},
		"MR-27/what version 1 of autoscalers has in annotations is specification": {desired: "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: h, annotations: {}}\n", live: "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: h, annotations: {autoscaling.alpha.kubernetes.io/metrics: '[]', autoscaling.alpha.kubernetes.io/behavior: '{}', autoscaling.alpha.kubernetes.io/conditions: '[]', theirs: x}}\n", options: Options{Origin: "o"}, want: map[string]string{"metadata.annotations": fmt.Sprint(map[string]string{"autoscaling.alpha.kubernetes.io/conditions": "[]", "theirs": "x", resourcesv1alpha1.AnnotationOrigin: "o", resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.DescriptionValue})}},
		"MR-27/as the manifest has it":                                            {desired: "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: h, annotations: {autoscaling.alpha.kubernetes.io/metrics: ours}}\n", live: "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: h, annotations: {autoscaling.alpha.kubernetes.io/metrics: theirs}}\n", options: Options{Origin: "o"}, want: map[string]string{"metadata.annotations": fmt.Sprint(map[string]string{"autoscaling.alpha.kubernetes.io/metrics": "ours", resourcesv1alpha1.AnnotationOrigin: "o", resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.DescriptionValue})}},
		"MRB-32/the revision of an exported Deployment":                           {desired: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, annotations: {deployment.kubernetes.io/revision: '1'}}\n", live: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, annotations: {deployment.kubernetes.io/revision: '2'}}\n", options: Options{Origin: "o"}, want: map[string]string{"metadata.annotations": fmt.Sprint(map[string]string{"deployment.kubernetes.io/revision": "2", resourcesv1alpha1.AnnotationOrigin: "o", resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.DescriptionValue})}},
		"MRB-32/the generation of an exported DaemonSet":                          {desired: "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d, annotations: {deprecated.daemonset.template.generation: '1'}}\n", live: "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d, annotations: {deprecated.daemonset.template.generation: '2'}}\n", options: Options{Origin: "o"}, want: map[string]string{"metadata.annotations": fmt.Sprint(map[string]string{"deprecated.daemonset.template.generation": "2", resourcesv1alpha1.AnnotationOrigin: "o", resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.DescriptionValue})}},
		"MRM-15/others are replaced":                                              {desired: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: [b]\n", live: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: [a]\n", want: map[string]string{"rules": "[b]"}},
		"MRL-5/the label of every Namespace stays":                                {desired: "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns}\n", live: "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns, labels: {kubernetes.io/metadata.name: ns, theirs: x}}\nspec: {finalizers: [kubernetes]}\n", options: Options{ForceOverwriteLabels: true}, want: map[string]string{"metadata.labels": "map[kubernetes.io/metadata.name:ns]", "spec.finalizers": "[kubernetes]"}},
		"MRM-15/taints of a Node's state stay":                                    {desired: "apiVersion: v1\nkind: Node\nmetadata: {name: ns}\nspec: {taints: [{key: a, effect: NoSchedule}]}\n", live: "apiVersion: v1\nkind: Node\nmetadata: {name: ns}\nspec: {providerID: p, taints: [{key: b, effect: NoSchedule}, {key: node.kubernetes.io/not-ready, effect: NoSchedule}]}\n", want: map[string]string{"spec": "map[providerID:p taints:[map[effect:NoSchedule key:a] map[effect:NoSchedule key:node.kubernetes.io/not-ready]]]"}},
		"MRM-15/who asked for a certificate stays":                                {desired: "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {name: c}\nspec: {signerName: s}\n", live: "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {name: c}\nspec: {signerName: s, username: u, groups: [g]}\n", want: map[string]string{"spec": "map[groups:[g] signerName:s username:u]"}},
		"MRM-15/when the taint of a rule was added stays":                         {desired: "apiVersion: resource.k8s.io/v1beta2\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec: {taint: {key: b, effect: NoExecute}}\n", live: "apiVersion: resource.k8s.io/v1beta2\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec: {taint: {key: a, effect: NoExecute, timeAdded: t}}\n", want: map[string]string{"spec.taint": "map[effect:NoExecute key:b timeAdded:t]"}},
		"MRM-15/unless the manifest says it":                                      {desired: "apiVersion: resource.k8s.io/v1beta2\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec: {taint: {key: a, effect: NoExecute, timeAdded: u}}\n", live: "apiVersion: resource.k8s.io/v1beta2\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec: {taint: {key: a, effect: NoExecute, timeAdded: t}}\n", want: map[string]string{"spec.taint": "map[effect:NoExecute key:a timeAdded:u]"}},
		"MRM-15/when taints of devices were added stays": {desired: "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: r}\nspec: {devices: [{name: x, taints: [{key: a, effect: NoExecute}]}, {name: d, taints: [{key: new, effect: NoExecute}, {key: a, effect: NoSchedule}, {key: a, effect: NoExecute}]}]}\n",
			live: "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: r}\nspec: {devices: [{name: d, taints: [{key: a, effect: NoExecute, timeAdded: t}, {key: a, effect: NoSchedule, timeAdded: u}]}]}\n", options: Options{},
			want: map[string]string{"spec.devices": "[map[name:x taints:[map[effect:NoExecute key:a]]] map[name:d taints:[map[effect:NoExecute key:new] map[effect:NoSchedule key:a timeAdded:u] map[effect:NoExecute key:a timeAdded:t]]]]"}},
		"MRM-15/in the form of v1beta1 too": {desired: "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceSlice\nmetadata: {name: r}\nspec: {devices: [{name: d, basic: {taints: [{key: a, effect: NoExecute, timeAdded: null}]}}]}\n",
			live: "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceSlice\nmetadata: {name: r}\nspec: {devices: [{name: d, basic: {taints: [{key: a, effect: NoExecute, timeAdded: t}]}}]}\n", options: Options{},
			want: map[string]string{"spec.devices": "[map[basic:map[taints:[map[effect:NoExecute key:a timeAdded:t]]] name:d]]"}},
		"MRL-15/an empty live status":     {desired: "apiVersion: x/v1\nkind: X\nmetadata: {name: c}\n", live: "apiVersion: x/v1\nkind: X\nmetadata: {name: c}\nstatus: {}\n", want: map[string]string{"status": "map[]"}},
		"MRM-17/no manifest, no replicas": {desired: "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: r}\nspec: {}\n", live: "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: r}\nspec: {replicas: 5}\n", want: map[string]string{"spec.replicas": "5"}},
	} {
		t.Run(name, func(t *testing.T) {
			desired, live := desiredFrom(t, tc.desired), fromYAML(t, tc.live)
			desiredBefore, liveBefore := desired.DeepCopy(), live.DeepCopy()
			merged := Merge(desired, live, tc.options)
			for path, want := range tc.want {
				expect.Equal(t, at(merged, path), want, "%s", path)
			}
			expect.Equal(t, cmp.Diff(desiredBefore.Object, desired.Object)+cmp.Diff(liveBefore.Object, live.Object), "", "arguments were changed")
			if again := Merge(desired, merged, tc.options); !Equal(merged, again) {
				t.Errorf("not idempotent: %s", cmp.Diff(merged.Object, again.Object))
			}
		})
	}
}

func at(object *unstructured.Unstructured, path string) string {
	fields := []string{""}
	for _, r := range path {
		if r == '.' {
			fields = append(fields, "")
			continue
		}
		fields[len(fields)-1] += string(r)
	}
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, fields...)
	return fmt.Sprint(value)
}

// MRM-16: a new object has no field that only the API server writes.
func TestForCreation_DropsFieldsOfTheAPIServer(t *testing.T) {
	desired := desiredFrom(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, uid: u, resourceVersion: '1', managedFields: [], creationTimestamp: x, annotations: {resources.gardener.cloud/description: mine}}\n")
	created := ForCreation(desired, Options{Origin: "ns/mr"})
	want := map[string]any{"name": "c", "annotations": map[string]any{resourcesv1alpha1.AnnotationOrigin: "ns/mr", resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.DescriptionValue}}
	expect.DeepEqual(t, created.Object["metadata"], want, "MRM-16/MRB-32")
	expect.Equal(t, created.GetAnnotations()[resourcesv1alpha1.AnnotationDescription], resourcesv1alpha1.DescriptionValue, "MRL-10: the description of the manifest stays")
	desired.CreateOnly = true
	want = map[string]any{"name": "c", "annotations": map[string]any{resourcesv1alpha1.AnnotationOrigin: "ns/mr"}}
	expect.DeepEqual(t, ForCreation(desired, Options{Origin: "ns/mr"}).Object["metadata"], want, "MR-30")
	live := fromYAML(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {a: b}, annotations: {resources.gardener.cloud/description: x, resources.gardener.cloud/origin: z}}\ndata: {theirs: yes}\n")
	expect.DeepEqual(t, Merge(desired, live, Options{}), live, "MR-30 present")
}

func TestEqual_IgnoresDefaultsAndSpelling(t *testing.T) {
	for name, tc := range map[string]struct {
		live, merged string
		want         bool
	}{
		"MR-26/nil and empty":                  {live: "apiVersion: v1\nkind: ConfigMap\ndata: {}\n", merged: "apiVersion: v1\nkind: ConfigMap\nbinaryData: null\n", want: true},
		"MRB-8/quantities":                     {live: "apiVersion: v1\nkind: Pod\nspec: {containers: [{resources: {limits: {cpu: '1'}}}]}\n", merged: "apiVersion: v1\nkind: Pod\nspec: {containers: [{resources: {limits: {cpu: 1000m}}}]}\n", want: true},
		"MRB-8/quantities as numbers":          {live: "apiVersion: v1\nkind: Pod\nspec: {containers: [{resources: {limits: {cpu: '1'}}}]}\n", merged: "apiVersion: v1\nkind: Pod\nspec: {containers: [{resources: {limits: {cpu: 1}}}]}\n", want: true},
		"MRB-8/other quantity":                 {live: "apiVersion: v1\nkind: Pod\nspec: {containers: [{resources: {limits: {cpu: '2'}}}]}\n", merged: "apiVersion: v1\nkind: Pod\nspec: {containers: [{resources: {limits: {cpu: 1000m}}}]}\n"},
		"MRB-8/spelling in custom resources":   {live: "apiVersion: x.example.org/v1\nkind: X\nlimits: {cpu: '1'}\n", merged: "apiVersion: x.example.org/v1\nkind: X\nlimits: {cpu: 1000m}\n"},
		"MRB-8/a default":                      {live: "apiVersion: apps/v1\nkind: Deployment\nspec: {revisionHistoryLimit: 10, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}}\n", merged: "apiVersion: apps/v1\nkind: Deployment\nspec: {}\n", want: true},
		"MRB-8/no default":                     {live: "apiVersion: apps/v1\nkind: Deployment\nspec: {revisionHistoryLimit: 9}\n", merged: "apiVersion: apps/v1\nkind: Deployment\nspec: {}\n"},
		"MRB-8/no default within a default":    {live: "apiVersion: apps/v1\nkind: Deployment\nspec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 26%}}}\n", merged: "apiVersion: apps/v1\nkind: Deployment\nspec: {}\n"},
		"MRB-8/defaults of kinds of their own": {live: "apiVersion: x.example.org/v1\nkind: Deployment\nspec: {revisionHistoryLimit: 10}\n", merged: "apiVersion: x.example.org/v1\nkind: Deployment\nspec: {}\n"},
		"MRB-8/pull policy follows the tag":    {live: "apiVersion: v1\nkind: Pod\nspec: {containers: [{image: 'a:1', imagePullPolicy: Always}]}\n", merged: "apiVersion: v1\nkind: Pod\nspec: {containers: [{image: 'a:1'}]}\n"},
		"MRB-8/false is not absent":            {live: "apiVersion: v1\nkind: ServiceAccount\n", merged: "apiVersion: v1\nkind: ServiceAccount\nautomountServiceAccountToken: false\n"},
		"MRB-7/large integers":                 {live: "apiVersion: x/v1\nkind: X\na: 9007199254740993\n", merged: "apiVersion: x/v1\nkind: X\na: 9007199254740992\n"},
		"MR-26/disruption budget":              {live: "apiVersion: policy/v1\nkind: PodDisruptionBudget\nspec: {minAvailable: 1}\n", merged: "apiVersion: policy/v1\nkind: PodDisruptionBudget\nspec: {minAvailable: 1}\n", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, Equal(fromYAML(t, tc.live), fromYAML(t, tc.merged)), tc.want)
		})
	}
}

// TestMerge_IsIdempotent is the property that merging a desired object into what merging it gave changes nothing, whatever the
// live object was.
func TestMerge_IsIdempotent(t *testing.T) {
	value := rapid.Deferred(func() *rapid.Generator[any] { return anyValue(3) })
	kinds := []struct{ apiVersion, kind string }{{apiVersion: "v1", kind: "ConfigMap"}, {apiVersion: "v1", kind: "Service"}, {apiVersion: "v1", kind: "ServiceAccount"}, {apiVersion: "apps/v1", kind: "Deployment"}, {apiVersion: "apps/v1", kind: "StatefulSet"}, {apiVersion: "batch/v1", kind: "Job"}, {apiVersion: "batch/v1", kind: "CronJob"}, {apiVersion: "x/v1", kind: "X"}}
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		build := func(label string) *unstructured.Unstructured {
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x"}}}
			object.SetAPIVersion(kind.apiVersion)
			object.SetKind(kind.kind)
			for _, field := range []string{"spec", "status", "data", "secrets"} {
				if rapid.Bool().Draw(t, label+field) {
					object.Object[field] = value.Draw(t, label+field)
				}
			}
			object.SetLabels(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.SampledFrom([]string{"1", "2"}), 0, 3).Draw(t, label+"labels"))
			object.SetAnnotations(rapid.MapOfN(rapid.SampledFrom([]string{"a", "reference.resources.gardener.cloud/a", "resources.gardener.cloud/preserve-replicas", "resources.gardener.cloud/preserve-resources", "loadbalancer.openstack.org/a"}),
				rapid.SampledFrom([]string{"true", "2"}), 0, 3).Draw(t, label+"annotations"))
			return object
		}
		d := build("desired")
		desired := &plan.Desired{Unstructured: d, Ref: objects.Ref{ID: objects.IDOf(d)}}
		if rapid.Bool().Draw(t, "old") {
			desired.Old = &resourcesv1alpha1.ObjectReference{Labels: map[string]string{"a": "1", "b": "2"}, Annotations: map[string]string{"a": "true"}}
		}
		options := Options{ForceOverwriteLabels: rapid.Bool().Draw(t, "labels"), ForceOverwriteAnnotations: rapid.Bool().Draw(t, "annotations"), Origin: "o", HorizontallyScaled: rapid.Bool().Draw(t, "scaled")}
		once := Merge(desired, build("live"), options)
		twice := Merge(desired, once, options)
		if !Equal(once, twice) {
			t.Fatalf("not idempotent: %s", cmp.Diff(once.Object, twice.Object))
		}
	})
}

func anyValue(depth int) *rapid.Generator[any] {
	scalars := rapid.OneOf(
		rapid.Map(rapid.Int64Range(0, 5), func(i int64) any { return i }), rapid.Just[any]("text"), rapid.Just[any](true), rapid.Just[any](nil),
	)
	if depth == 0 {
		return scalars
	}
	keys := rapid.SampledFrom([]string{"template", "spec", "metadata", "containers", "name", "resources", "replicas", "selector", "labels", "annotations", "ports", "nodePort", "port", "clusterIP", "type", "jobTemplate"})
	return rapid.OneOf(scalars,
		rapid.Map(rapid.MapOfN(keys, anyValue(depth-1), 0, 5), func(m map[string]any) any { return m }),
		rapid.Map(rapid.SliceOfN(anyValue(depth-1), 0, 3), func(s []any) any { return s }))
}

func object(apiVersion, kind, name, more string) string {
	return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: %s}\n%s\n", apiVersion, kind, name, more)
}
