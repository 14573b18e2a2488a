package schema

import (
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/test/expect"
)

// typeOf is the type of an object.
func typeOf(fields map[string]any) *Type {
	t, _ := Of(kindOf(fields))
	return t
}

// TestDefaults: what the API server fills in is no drift, and no other value is taken for it (MRB-8). Each pair is compared in both directions.
func TestDefaults(t *testing.T) {
	const (
		pod         = "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{name: c%s}]}}}\n"
		service     = "apiVersion: v1\nkind: Service\nspec: {type: ClusterIP%s}\n"
		claim       = "apiVersion: v1\nkind: PersistentVolumeClaim\nspec: {%s}\n"
		deployment  = "apiVersion: apps/v1\nkind: Deployment\nspec: {strategy: {%s}}\n"
		daemons     = "apiVersion: apps/v1\nkind: DaemonSet\nspec: {updateStrategy: {%s}}\n"
		job         = "apiVersion: batch/v1\nkind: Job\nspec: {%s}\n"
		cronJob     = "apiVersion: batch/v1\nkind: CronJob\nspec: {jobTemplate: {spec: {%s}}}\n"
		scaler      = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nspec: {maxReplicas: 2%s}\n"
		limits      = "apiVersion: v1\nkind: LimitRange\nspec: {limits: [{type: %s}]}\n"
		definition  = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {versions: [{name: v1, schema: {openAPIV3Schema: {%s}}}]}\n"
		custom      = "apiVersion: example.org/v1\nkind: X\nspec: %s\n"
		budget      = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nspec: {%s}\n"
		secret      = "apiVersion: v1\nkind: Secret\ndata: {%s}\n"
		stateful    = "apiVersion: apps/v1\nkind: StatefulSet\nspec: {updateStrategy: {%s}}\n"
		policy      = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nspec: {podSelector: {}%s}\n"
		roleBinding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nsubjects: [{%s}]\n"
		template    = "spec.template.spec.containers.[c]."
		open        = "spec.versions.[v1].schema.openAPIV3Schema"
	)
	for name, c := range map[string]struct{ in, a, b, want string }{
		"MRB-8/the tag latest is pulled":             {pod, ", image: 'a:latest'", ", image: 'a:latest', imagePullPolicy: Always", ""},
		"MRB-8/no tag is the tag latest":             {pod, ", image: 'h:5000/a'", ", image: 'h:5000/a', imagePullPolicy: Always", ""},
		"MRB-8/a tag":                                {pod, ", image: 'a:v1'", ", image: 'a:v1', imagePullPolicy: IfNotPresent", ""},
		"MRB-8/a digest":                             {pod, ", image: 'a@sha256:x'", ", image: 'a@sha256:x', imagePullPolicy: IfNotPresent", ""},
		"MRB-8/a tag and a digest":                   {pod, ", image: 'a:v1@sha256:x'", ", image: 'a:v1@sha256:x', imagePullPolicy: IfNotPresent", ""},
		"MRB-8/latest with a digest":                 {pod, ", image: 'a:latest@sha256:x'", ", image: 'a:latest@sha256:x', imagePullPolicy: Always", ""},
		"MRB-8/an empty digest":                      {pod, ", image: 'a@'", ", image: 'a@', imagePullPolicy: Always", ""},
		"MRB-8/another pull policy":                  {pod, ", image: 'a:v1'", ", image: 'a:v1', imagePullPolicy: Always", template + "imagePullPolicy"},
		"MRB-8/no affinity":                          {service, "", ", sessionAffinity: None", ""},
		"MRB-8/affinity lasts three hours":           {service, ", sessionAffinity: ClientIP", ", sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 10800}}", ""},
		"MRB-8/another time":                         {service, ", sessionAffinity: ClientIP", ", sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 10801}}", "spec.sessionAffinityConfig.clientIP.timeoutSeconds"},
		"MRB-8/a time without affinity is dropped":   {service, "", ", sessionAffinityConfig: {clientIP: {timeoutSeconds: 1}}", ""},
		"MRB-8/a data source is its reference":       {claim, "dataSource: {apiGroup: g, kind: K, name: n}", "dataSource: {apiGroup: g, kind: K, name: n}, dataSourceRef: {apiGroup: g, kind: K, name: n}", ""},
		"MRB-8/without a group":                      {claim, "dataSource: {kind: K, name: n}", "dataSource: {kind: K, name: n}, dataSourceRef: {kind: K, name: n}", ""},
		"MRB-8/a reference is the data source":       {claim, "dataSourceRef: {apiGroup: g, kind: K, name: n}", "dataSourceRef: {apiGroup: g, kind: K, name: n}, dataSource: {apiGroup: g, kind: K, name: n}", ""},
		"MRB-8/not from another namespace":           {claim, "dataSourceRef: {kind: K, name: n, namespace: x}", "dataSourceRef: {kind: K, name: n, namespace: x}, dataSource: {kind: K, name: n}", "spec.dataSource"},
		"MRB-8/no strategy is to roll":               {deployment, "", "type: RollingUpdate, rollingUpdate: {maxUnavailable: 25%, maxSurge: 25%}", ""},
		"MRB-8/to recreate does not roll":            {deployment, "type: Recreate", "type: Recreate, rollingUpdate: {}", "spec.strategy.rollingUpdate"},
		"MRB-8/to roll by name":                      {deployment, "type: RollingUpdate", "type: RollingUpdate, rollingUpdate: {maxUnavailable: 25%}", ""},
		"MRB-8/daemons roll one by one":              {daemons, "", "type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 0}", ""},
		"MRB-8/daemons on deletion":                  {daemons, "type: OnDelete", "type: OnDelete, rollingUpdate: {}", "spec.updateStrategy.rollingUpdate"},
		"MRB-8/a StatefulSet that names no type":     {stateful, "", "type: RollingUpdate, rollingUpdate: {partition: 0}", ""},
		"MRB-8/how a StatefulSet rolls is filled in": {stateful, "type: RollingUpdate", "", "spec.updateStrategy.rollingUpdate"},
		"MRB-8/a Job that names what is filled in":   {job, "parallelism: 1", "", "spec.completions"},
		"MRB-8/a StatefulSet that names it":          {stateful, "type: RollingUpdate", "type: RollingUpdate, rollingUpdate: {partition: 0}", "spec.updateStrategy.rollingUpdate"},
		"MRB-8/a Job":                                {job, "", "parallelism: 1, completions: 1, backoffLimit: 6, completionMode: NonIndexed, suspend: false, podReplacementPolicy: TerminatingOrFailed", ""},
		"MRB-8/a Job in parallel":                    {job, "parallelism: 2", "parallelism: 2, completions: 1", "spec.completions"},
		"MRB-8/a Job with a limit for each index":    {job, "backoffLimitPerIndex: 1", "backoffLimitPerIndex: 1, backoffLimit: 2147483647", ""},
		"MRB-8/a Job with a policy of failures":      {job, "podFailurePolicy: {rules: []}", "podFailurePolicy: {rules: []}, podReplacementPolicy: Failed", ""},
		"MRB-8/a Job's template":                     {cronJob, "", "parallelism: 1", "spec.jobTemplate.spec.parallelism"},
		"MRB-8/a usual rule beside a given one":      {scaler, ", behavior: {scaleDown: {selectPolicy: Min}}", ", behavior: {scaleDown: {selectPolicy: Min, policies: [{type: Percent, value: 100, periodSeconds: 15}]}, scaleUp: {stabilizationWindowSeconds: 0}}", ""},
		"MRB-8/another usual rule":                   {scaler, ", behavior: {scaleDown: {selectPolicy: Min}}", ", behavior: {scaleDown: {selectPolicy: Max}}", "spec.behavior.scaleDown.selectPolicy"},
		"MRB-8/no limit is the largest":              {limits, "Container, max: {cpu: '2'}", "Container, max: {cpu: '2'}, default: {cpu: '2'}, defaultRequest: {cpu: '2'}", ""},
		"MRB-8/what is given comes first":            {limits, "Container, max: {cpu: '2', memory: 1Gi}, default: {cpu: '1'}", "Container, max: {cpu: '2', memory: 1Gi}, default: {cpu: '1', memory: 1Gi}", ""},
		"MRB-8/the smallest is asked for":            {limits, "Container, min: {cpu: '1'}", "Container, min: {cpu: '1'}, defaultRequest: {cpu: '1'}", ""},
		"MRB-8/not of Pods":                          {limits, "Pod, max: {cpu: '2'}", "Pod, max: {cpu: '2'}, default: {cpu: '2'}", "spec.limits.[0].default"},
		"MRB-8/two policies":                         {policy, ", egress: [{}]", ", egress: [{}], policyTypes: [Ingress, Egress]", ""},
		"MRB-8/one policy":                           {policy, ", egress: []", ", policyTypes: [Ingress]", ""},
		"MRB-8/the other policy":                     {policy, "", ", policyTypes: [Egress]", "spec.policyTypes.[0]"},
		"MRB-8/a user's group":                       {roleBinding, "kind: User, name: a", "kind: User, name: a, apiGroup: rbac.authorization.k8s.io", ""},
		"MRB-8/a ServiceAccount has none":            {roleBinding, "kind: ServiceAccount, name: a", "kind: ServiceAccount, name: a, apiGroup: rbac.authorization.k8s.io", "subjects.[a].apiGroup"},
		"MRB-8/items, one or many":                   {definition, "items: [{type: string}]", "items: {type: string}", open + ".items"},
		"MRB-8/a list of schemas":                    {definition, "items: [{nullable: false}]", "items: [{}]", ""},
		"MRB-8/a longer list of schemas":             {definition, "items: [{}]", "items: [{}, {}]", open + ".items"},
		"MRB-8/another list of schemas":              {definition, "items: [{type: string}]", "items: [{type: number}]", open + ".items.[0].type"},
		"MRB-8/a list of what no type knows":         {custom, "{a: [1, {b: c}]}", "{a: [1, {b: d}]}", "spec"},
		"MRB-8/a shorter list":                       {custom, "{a: [1, 2]}", "{a: [1]}", "spec"},
		"MRB-8/a list is no mapping":                 {custom, "{a: []}", "{a: {}}", "spec"},
		"MRB-8/a fraction":                           {custom, "{a: 1.5}", "{a: 1.25}", "spec"},
		"MRB-8/a fraction is no integer":             {custom, "{a: 1.5}", "{a: 1}", "spec"},
		"MRB-8/the same fraction":                    {custom, "{a: 1.5, b: 1}", "{a: 1.50, b: 1}", ""},
		"MRB-8/a number is no text":                  {custom, "{a: 1}", "{a: '1'}", "spec"},
		"MRB-8/yes is not no":                        {custom, "{a: true}", "{a: false}", "spec"},
		"MRB-8/yes is no text":                       {custom, "{a: true}", "{a: 'true'}", "spec"},
		"MRB-8/no number is zero":                    {budget, "minAvailable: 0", "minAvailable: '0'", "spec.minAvailable"},
		"MRB-8/base64 with line breaks":              {secret, `a: "YWJj\nZGVm\r\n"`, "a: YWJjZGVm", ""},
		"MRB-8/other bytes":                          {secret, "a: YWJj", "a: YWJk", "data.a"},
		"MRB-8/no bytes":                             {secret, "a: ''", "a: null", ""},
		"MRB-8/a key more":                           {secret, "a: ''", "a: '', b: ''", "data.b"},
		"MRB-8/a mapping that is a text":             {claim, "resources: x", "resources: z", "spec.resources"},
		"MRB-8/a mapping that is a text, and none":   {claim, "resources: x", "", "spec.resources"},
		"MRB-8/a mapping of texts that is a text":    {claim, "selector: {matchLabels: x}", "selector: {matchLabels: z}", "spec.selector.matchLabels"},
		"MRB-8/a list that is a text":                {claim, "accessModes: x", "accessModes: z", "spec.accessModes"},
		"MRB-8/a list that is longer":                {claim, "accessModes: [a]", "accessModes: [a, b]", "spec.accessModes"},
		"MRB-8/a quantity as a fraction":             {claim, "resources: {requests: {a: 0.5}}", "resources: {requests: {a: 500m}}", ""},
		"MRB-8/a quantity that is none":              {claim, "resources: {requests: {a: x}}", "resources: {requests: {a: z}}", "spec.resources.requests.a"},
		"MRB-8/two that are none":                    {claim, "resources: {requests: {a: true}}", "resources: {requests: {a: []}}", "spec.resources.requests.a"},
		"MRB-8/a number of another size":             {job, "parallelism: 3", "parallelism: 3.5", "spec.parallelism"},
		"MRB-8/a port that is none":                  {pod, ", ports: [{containerPort: 80}]", ", ports: [{containerPort: 80, hostPort: 0}]", ""},
		"MRB-8/no is none":                           {"apiVersion: v1\nkind: Pod\nspec: {dnsPolicy: Default%s}\n", "", ", hostNetwork: false", ""},
		"MRB-8/yes is not none":                      {"apiVersion: v1\nkind: Pod\nspec: {dnsPolicy: Default%s}\n", "", ", hostNetwork: true", "spec.hostNetwork"},
		"MRB-8/zero is no empty text":                {claim, "volumeName: 0", "", "spec.volumeName"},
		"MRB-8/no is no empty text":                  {claim, "volumeName: false", "", "spec.volumeName"},
		"MRB-8/a fraction is no empty text":          {claim, "volumeName: 0.5", "", "spec.volumeName"},
		"MRB-8/an empty text is no number":           {pod, ", ports: [{containerPort: 80}]", ", ports: [{containerPort: 80, hostPort: ''}]", template + "ports.[0].hostPort"},
		"MRB-8/an empty list is no text":             {claim, "volumeName: []", "", "spec.volumeName"},
		"MRB-8/a service that names no type":         {"apiVersion: v1\nkind: Service\nspec: {%s}\n", "", "type: ClusterIP, internalTrafficPolicy: Cluster", ""},
		"MRB-8/a service without a cluster's IP":     {"apiVersion: v1\nkind: Service\nspec: {%s}\n", "type: ExternalName", "type: ExternalName, internalTrafficPolicy: Cluster", "spec.internalTrafficPolicy"},
		"MRB-8/limits that are given stay":           {limits, "Container, max: {cpu: '2'}, default: {cpu: '1'}", "Container, max: {cpu: '2'}, default: {cpu: '2'}", "spec.limits.[0].default.cpu"},
		"MRB-8/all devices are not counted":          {"apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nspec: {devices: {requests: [{name: a, deviceClassName: x, allocationMode: All%s}]}}\n", "", ", count: 1", "spec.devices.requests.[a].count"},
		"MRB-8/a list that is a text, and an empty":  {claim, "accessModes: []", "accessModes: x", "spec.accessModes"},
		"MRB-8/no schemas, one or many":              {definition, "items: []", "items: {}", open + ".items"},
		"MRB-8/null that no type knows":              {"apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {%s}}}\n", "", "unheardOf: null", "spec.template.spec.unheardOf"},
		"MRB-8/a list and none":                      {claim, "accessModes: []", "accessModes: [a]", "spec.accessModes"},
		"MRB-8/a list that is a text, and none":      {claim, "accessModes: [a]", "accessModes: x", "spec.accessModes"},
		"MRB-8/a duration that is none":              {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {creationTimestamp: %s}\n", "x", "z", "metadata.creationTimestamp"},
		"MRB-8/texts of a Secret":                    {"apiVersion: v1\nkind: Secret\nstringData: {%s}\n", "a: b", "a: c", "stringData.a"},
		"MRB-8/a name of a kind in lower case":       {"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {names: {kind: Foo%s}}\n", "", ", singular: foo, listKind: FooList", ""},
		"MRB-8/null is not written":                  {claim, "accessModes: null", "accessModes: []", ""},
		"MRB-8/a name of a volume is not its empty":  {claim, "volumeName: ''", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := object(t, strings.Replace(c.in, "%s", c.a, 1)), object(t, strings.Replace(c.in, "%s", c.b, 1))
			kind := typeOf(a)
			expect.Equal(t, strings.Join(kind.Differ(a, b), "."), c.want, "a change differs at")
			expect.Equal(t, strings.Join(kind.Differ(b, a), "."), c.want, "drift differs at")
		})
	}
}

// TestAt: the types of fields at a path, through mappings.
func TestAt(t *testing.T) {
	fields := object(t, "apiVersion: v1\nkind: Pod\n")
	for path, want := range map[string]Kind{
		"metadata.labels": Map, "metadata.labels.a": String, "metadata.labels.a.b": Any, "spec.containers": List, "spec.containers.a": Any, "spec.unheardOf.a": Any,
		"spec.securityContext.runAsUser": Number, "spec.nodeSelector.x": String, "spec.overhead.cpu": Quantity,
	} {
		expect.Equal(t, typeOf(fields).At(strings.Split(path, ".")...).Kind, want, "MRB-8: %s is of type", path)
	}
}

// TestKnownKinds: kinds of Kubernetes are told from others.
func TestKnownKinds(t *testing.T) {
	for kind, want := range map[runtimeschema.GroupVersionKind]bool{
		{Version: "v1", Kind: "Pod"}: true, {Group: "example.org", Version: "v1", Kind: "Pod"}: false, {Version: "v1", Kind: "ListOptions"}: false,
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}: true,
	} {
		for range 2 { // Built, and then remembered.
			expect.Equal(t, expect.OK(Of(kind)), want, "MRB-8: %v is one of Kubernetes' own", kind)
		}
	}
}

// TestDropEmptyInSchemas: fields that mean nothing are left out within the schemas of a CustomResourceDefinition as well (MRB-8).
func TestDropEmptyInSchemas(t *testing.T) {
	const in = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {versions: [{schema: {openAPIV3Schema: {items: %s}}}]}\n"
	for from, want := range map[string]string{"{required: []}": "{}", "[{required: []}, {type: a}]": "[{}, {type: a}]", "{default: null}": "{default: null}", "{properties: {a: {required: []}}}": "{properties: {a: {}}}"} {
		got, expected := object(t, strings.Replace(in, "%s", from, 1)), object(t, strings.Replace(in, "%s", want, 1))
		typeOf(got).DropEmpty(got)
		expect.DeepEqual(t, got, expected, "MRB-8")
	}
}

// TestNumbers: numbers are compared by value, whether they were read as integers or not, and without losing digits (MRB-8).
func TestNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		a, b any
		want bool
	}{
		"MRB-8/equal": {int64(1), float64(1), true}, "MRB-8/a fraction": {int64(1), 1.5, false}, "MRB-8/fractions": {1.5, 1.5, true},
		"MRB-8/a large one": {int64(1<<53 + 1), float64(1 << 53), false}, "MRB-8/a text": {int64(1), "1", false}, "MRB-8/zero and none": {int64(0), nil, false},
	} {
		got, back := (&Type{}).Same(c.a, c.b), (&Type{}).Same(c.b, c.a)
		expect.True(t, got == c.want && back == c.want, "%s: %v is %v: %t and %t", name, c.a, c.b, got, back)
	}
	number := &Type{Kind: Number}
	for value, want := range map[any]bool{float64(0): true, float64(1): false, int64(0): true, int64(1): false, "": false, false: false} {
		expect.Equal(t, number.IsZero(value), want, "MRB-8: %v means none", value)
	}
	if (&Type{Kind: String}).IsZero(float64(0)) || (&Type{Kind: IntOrString}).IsZero(float64(0)) || (&Type{Kind: String}).IsZero(struct{}{}) {
		t.Error("MRB-8: another type means none")
	}
	duration := &Type{Kind: Duration}
	expect.True(t, duration.Same("60s", "1m0s") && !duration.Same("60s", "2m") && !duration.Same("x", "y"),
		"MRB-8: durations are compared by value")
}
