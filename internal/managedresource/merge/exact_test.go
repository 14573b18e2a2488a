package merge

import (
	"fmt"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
)

// MRM-10, MRB-26: each live node port serves one desired port, and one that the manifest asks for is given to no other.
func TestMerge_KeepsNodePorts(t *testing.T) {
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {type: NodePort, ports: %s}\n"
	for name, tc := range map[string]struct{ desired, live, want string }{
		"MRM-10/two ports, one live": {"[{name: a, port: 80}, {name: b, port: 80}]", "[{name: a, port: 80, nodePort: 333}]", "[map[name:a nodePort:333 port:80] map[name:b port:80]]"},
		"MRM-10/the port of one is asked for by another": {"[{name: a, port: 80}, {name: b, port: 81, nodePort: 333}]", "[{name: a, port: 80, nodePort: 333}]",
			"[map[name:a port:80] map[name:b nodePort:333 port:81]]"},
		"MRM-10/the number of another protocol is free": {"[{name: a, port: 80}, {name: b, port: 81, protocol: UDP, nodePort: 333}]", "[{name: a, port: 80, nodePort: 333}]",
			"[map[name:a nodePort:333 port:80] map[name:b nodePort:333 port:81 protocol:UDP]]"},
		"MRM-10/the first live port of a number": {"[{port: 80}]", "[{port: 80, nodePort: 333}, {port: 80, nodePort: 444}]", "[map[nodePort:333 port:80]]"},
		"MRM-10/a live port without a node port": {"[{name: a, port: 80}]", "[{name: a, port: 80}]", "[map[name:a port:80]]"},
		"MRM-10/the name of another protocol":    {"[{name: a, port: 80, protocol: UDP}]", "[{name: a, port: 81, nodePort: 333}]", "[map[name:a port:80 protocol:UDP]]"},
		"MRM-10/no names, other numbers":         {"[{port: 80}]", "[{port: 81, nodePort: 333}]", "[map[port:80]]"},
		"MRM-10/the name before the number":      {"[{name: b, port: 80}, {name: a, port: 81}]", "[{name: a, port: 80, nodePort: 333}]", "[map[name:b port:80] map[name:a nodePort:333 port:81]]"},
		"MRM-10/odd ports":                       {"[x, {name: a, port: 80}]", "[y, {name: a, port: 80, nodePort: 333}]", "[x map[name:a nodePort:333 port:80]]"},
	} {
		t.Run(name, func(t *testing.T) {
			merged := Merge(desiredFrom(t, fmt.Sprintf(service, tc.desired)), fromYAML(t, fmt.Sprintf(service, tc.live)), Options{})
			expect.Equal(t, at(merged, "spec.ports"), tc.want)
		})
	}
}

// MRM-1, MRM-3: all workloads are merged like Deployments: replicas that are unset, and resources that are to be preserved, are the live ones.
func TestMerge_PreservesReplicasAndResources(t *testing.T) {
	const preserve = "metadata: {name: w, annotations: {resources.gardener.cloud/preserve-resources: 'true'}}\n"
	const containers = "{spec: {containers: [{name: a, resources: {limits: {cpu: %d}}}]}}"
	for kind, apiVersion := range map[string]string{"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1"} {
		object := func(meta, spec string, cpu int) string {
			return "apiVersion: " + apiVersion + "\nkind: " + kind + "\n" + meta + "spec: {" + spec + "template: " + fmt.Sprintf(containers, cpu) + "}\n"
		}
		merged := Merge(desiredFrom(t, object(preserve, "", 1)), fromYAML(t, object("metadata: {name: w}\n", "replicas: 3, ", 7)), Options{})
		expect.Equal(t, at(merged, "spec.template.spec.containers"), "[map[name:a resources:map[limits:map[cpu:7]]]]", "MRM-3/%s", kind)
		if got := at(merged, "spec.replicas"); (kind == "Deployment" || kind == "StatefulSet") && got != "3" {
			t.Errorf("MRM-1/%s: got %s replicas", kind, got)
		}
	}
}

// MRM-6: a Job that never got labels of its own keeps those of the manifest, and one label is enough to be kept.
func TestMerge_KeepsLabelsOfJobs(t *testing.T) {
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {metadata: {labels: %s}}}\n"
	for name, tc := range map[string]struct{ desired, live, want string }{
		"MRM-6/none are live":  {"{a: b}", "{}", "map[a:b]"},
		"MRM-6/one is live":    {"{a: b}", "{job-name: j}", "map[a:b job-name:j]"},
		"MRM-6/none is wanted": {"{}", "{job-name: j}", "map[job-name:j]"},
	} {
		merged := Merge(desiredFrom(t, fmt.Sprintf(job, tc.desired)), fromYAML(t, fmt.Sprintf(job, tc.live)), Options{})
		expect.Equal(t, at(merged, "spec.template.metadata.labels"), tc.want, "%s", name)
	}
}
