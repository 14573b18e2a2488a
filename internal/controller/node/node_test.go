package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
)

var critical = map[string]string{LabelCritical: "true"}

func node(taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"pool": "a"}}, Spec: corev1.NodeSpec{Taints: append([]corev1.Taint{{Key: TaintCritical, Effect: corev1.TaintEffectNoSchedule}}, taints...)}}
}

func set(change ...func(*appsv1.DaemonSet)) appsv1.DaemonSet {
	s := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "ds", UID: "ds-uid", Labels: critical}}
	s.Spec.Template.Labels = critical
	s.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: TaintCritical, Operator: corev1.TolerationOpExists}}
	for _, c := range change {
		c(&s)
	}
	return s
}

func pod(name string, change ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: critical, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", UID: "ds-uid", Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	for _, c := range change {
		c(&p)
	}
	return p
}

func unready(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

func TestTaints(t *testing.T) {
	n := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "a"}, {Key: TaintCritical, Effect: corev1.TaintEffectNoExecute}, {Key: "b"}, {Key: TaintCritical}}}}
	expect.True(t, Tainted(n) && !Tainted(&corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "a", Value: TaintCritical}}}}),
		"NCC-1: only the key counts")
	diff := cmp.Diff([]corev1.Taint{{Key: "a"}, {Key: "b"}}, Untainted(n))
	expect.True(t, diff == "" && len(n.Spec.Taints) == 4, "NCC-10: %s", diff)
}

func TestUnscheduled(t *testing.T) {
	for name, tc := range map[string]struct {
		node *corev1.Node
		set  appsv1.DaemonSet
		pods []corev1.Pod
		want bool
	}{
		"NCC-5/no Pod":                         {set: set(), want: true},
		"NCC-5/a Pod, ready or not":            {set: set(), pods: []corev1.Pod{pod("p", unready)}},
		"NCC-5/a Pod without the label":        {set: set(), pods: []corev1.Pod{pod("p", func(p *corev1.Pod) { p.Labels = nil })}, want: true},
		"NCC-5/owned, not controlled":          {set: set(), pods: []corev1.Pod{pod("p", func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil })}, want: true},
		"NCC-5/the same UID of another kind":   {set: set(), pods: []corev1.Pod{pod("p", func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "ReplicaSet" })}, want: true},
		"NCC-5/another UID":                    {set: set(), pods: []corev1.Pod{pod("p", func(p *corev1.Pod) { p.OwnerReferences[0].UID = "x" })}, want: true},
		"NCC-3/SW-11, another namespace":       {set: set(func(s *appsv1.DaemonSet) { s.Namespace = "x" })},
		"NCC-3/label in the template only":     {set: set(func(s *appsv1.DaemonSet) { s.Labels = nil })},
		"NCC-3/label on the DaemonSet only":    {set: set(func(s *appsv1.DaemonSet) { s.Spec.Template.Labels = nil })},
		"NCC-3/label false":                    {set: set(func(s *appsv1.DaemonSet) { s.Labels = map[string]string{LabelCritical: "false"} })},
		"NCC-8/it is being deleted":            {set: set(func(s *appsv1.DaemonSet) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} })},
		"NCC-8/selector of other nodes":        {set: set(func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.NodeSelector = map[string]string{"pool": "b"} })},
		"NCC-8/selector of this node":          {set: set(func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.NodeSelector = map[string]string{"pool": "a"} }), want: true},
		"NCC-8/name of another node":           {set: set(func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.NodeName = "x" })},
		"NCC-8/name of this node":              {set: set(func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.NodeName = "n" }), want: true},
		"NCC-8/affinity to other nodes":        {set: set(affinity("pool", "b"))},
		"NCC-8/affinity to this node":          {set: set(affinity("pool", "a")), want: true},
		"NCC-8/it does not tolerate the taint": {set: set(func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.Tolerations = nil })},
		"NCC-8/another taint":                  {node: node(corev1.Taint{Key: "x", Effect: corev1.TaintEffectNoSchedule}), set: set()},
		"NCC-8/a taint that only prefers":      {node: node(corev1.Taint{Key: "x", Effect: corev1.TaintEffectPreferNoSchedule}), set: set(), want: true},
		"NCC-8/what all daemons tolerate":      {node: node(corev1.Taint{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}), set: set(), want: true},
		"6.4/a taint that goes by itself":      {node: node(corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Effect: corev1.TaintEffectNoSchedule}), set: set(), want: true},
		"6.4/one that goes and one that stays": {node: node(corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: "x", Effect: corev1.TaintEffectNoSchedule}), set: set()},
	} {
		n := tc.node
		if n == nil {
			n = node()
		}
		StripNode(n)
		StripDaemonSet(&tc.set)
		for i := range tc.pods {
			StripPod(&tc.pods[i])
		}
		if got := Unscheduled(n, []appsv1.DaemonSet{tc.set}, tc.pods); (len(got) == 1) != tc.want || tc.want && got[0] != "kube-system/ds" {
			t.Errorf("%s: got %v", name, got)
		}
	}
	other := set(func(s *appsv1.DaemonSet) { s.Name, s.UID = "a", "a" })
	expect.DeepEqual(t, Unscheduled(node(), []appsv1.DaemonSet{set(), other}, nil), []string{"kube-system/a", "kube-system/ds"},
		"6.4/sorted")
}

func affinity(key, value string) func(*appsv1.DaemonSet) {
	return func(s *appsv1.DaemonSet) {
		s.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}}}}}
	}
}

func TestUnready(t *testing.T) {
	static := func(p *corev1.Pod) { p.OwnerReferences = nil }
	failed := func(p *corev1.Pod) { unready(p); p.Status.Phase = corev1.PodFailed }
	for name, tc := range map[string]struct {
		pods []corev1.Pod
		want []string
	}{
		"NCC-6/all ready":                       {[]corev1.Pod{pod("a"), pod("b", static)}, nil},
		"NCC-6/sorted":                          {[]corev1.Pod{pod("b", unready), pod("a", unready)}, []string{"kube-system/a", "kube-system/b"}},
		"NCC-6/no condition":                    {[]corev1.Pod{pod("a", func(p *corev1.Pod) { p.Status.Conditions = nil })}, []string{"kube-system/a"}},
		"NCC-4/a static Pod":                    {[]corev1.Pod{pod("a", static, unready)}, []string{"kube-system/a"}},
		"NCC-4/another namespace, another mark": {[]corev1.Pod{pod("a", unready, func(p *corev1.Pod) { p.Namespace = "x" }), pod("b", unready, func(p *corev1.Pod) { p.Labels = map[string]string{LabelCritical: "false"} })}, nil},
		"6.4/ended and replaced":                {[]corev1.Pod{pod("a", failed), pod("b")}, nil},
		"6.4/ended, its successor is not ready": {[]corev1.Pod{pod("a", failed), pod("b", unready)}, []string{"kube-system/b"}},
		"6.4/ended, not replaced":               {[]corev1.Pod{pod("a", failed)}, []string{"kube-system/a"}},
		"6.4/ended, another's Pod":              {[]corev1.Pod{pod("a", failed), pod("b", func(p *corev1.Pod) { p.OwnerReferences[0].UID = "x" })}, []string{"kube-system/a"}},
		"6.4/all ended":                         {[]corev1.Pod{pod("a", failed), pod("b", failed)}, []string{"kube-system/a", "kube-system/b"}},
	} {
		for i := range tc.pods {
			StripPod(&tc.pods[i])
		}
		expect.DeepEqual(t, Unready(tc.pods), tc.want, "%s", name)
	}
}

func TestDrivers(t *testing.T) {
	waits := func(driver string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Annotations = map[string]string{annotationDriver + "x": driver, "other": "y", annotationDriver + "y": "z"}
		}
	}
	pods := []corev1.Pod{pod("a", waits("foo")), pod("b", waits("foo")), pod("c", waits("not"), func(p *corev1.Pod) { p.Labels = map[string]string{} }), pod("d")}
	for i := range pods {
		StripPod(&pods[i])
	}
	required := RequiredDrivers(pods)
	expect.DeepEqual(t, required, []string{"foo", "z"}, "NCC-7")
	has := func(drivers ...string) *storagev1.CSINode {
		n := &storagev1.CSINode{}
		for _, d := range drivers {
			n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{Name: d})
		}
		return n
	}
	for name, tc := range map[string]struct {
		node *storagev1.CSINode
		want []string
	}{
		"NCC-7/no CSINode": {nil, []string{"foo", "z"}}, "NCC-7/one of them": {has("z", "x"), []string{"foo"}}, "NCC-7/all": {has("foo", "z"), nil},
	} {
		expect.DeepEqual(t, MissingDrivers(required, tc.node), tc.want, "%s", name)
	}
}

func nodes(names ...string) []metav1.PartialObjectMetadata {
	var all []metav1.PartialObjectMetadata
	for _, name := range names {
		all = append(all, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return all
}

func numbered(n int) []metav1.PartialObjectMetadata {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("node-%04d", i))
	}
	return nodes(names...)
}

func TestDelays(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes    []metav1.PartialObjectMetadata
		min, max time.Duration
		want     []string // Of the first nodes.
	}{
		"NRD-7/BH-ND-4, three":             {numbered(3), 0, 5 * time.Minute, []string{"0s", "1m40s", "3m20s"}},
		"NRD-7/one":                        {numbered(1), 5 * time.Second, 30 * time.Second, []string{"5s"}},
		"NRD-7/ten":                        {numbered(10), 5 * time.Second, 30 * time.Second, []string{"5s", "7.5s", "10s", "12.5s", "15s", "17.5s", "20s", "22.5s", "25s", "27.5s"}},
		"NRD-7/thirty-one":                 {numbered(31), 5 * time.Second, 30 * time.Second, []string{"5s", "5.806451612s", "6.612903225s", "7.419354838s"}},
		"NRD-7/BH-ND-6, more than seconds": {numbered(1000), 0, 5 * time.Minute, []string{"0s", "300ms", "600ms", "899.999999ms"}},
		"NRD-6/no range":                   {numbered(3), time.Minute, time.Minute, []string{"1m0s", "1m0s", "1m0s"}},
		"NRD-9, BH-ND-7/half an hour":      {numbered(2), 0, 1800 * time.Second, []string{"0s", "15m0s"}},
		"NRD-2/none":                       {nil, 0, time.Minute, nil},
	} {
		got := Delays(tc.nodes, nil, tc.min, tc.max)
		expect.Equal(t, len(got), len(tc.nodes), "%s: delays", name)
		for i, want := range tc.want {
			expect.Equal(t, got[tc.nodes[i].Name], want, "%s: node %d waits", name, i)
		}
	}
	got := Delays(nodes("node-2", "node-10"), nil, 0, time.Minute)
	expect.DeepEqual(t, got, map[string]string{"node-10": "0s", "node-2": "30s"}, "NRD-5")
	mixed := nodes("a", "b", "c")
	mixed[0].Labels, mixed[1].Labels = map[string]string{LabelAgentSecret: "s"}, map[string]string{LabelAgentSecret: "other"}
	expect.DeepEqual(t, Delays(mixed, map[string]bool{"s": true}, 0, time.Minute), map[string]string{"a": "", "b": "0s", "c": "30s"}, "NRD-3/SW-12")
}

// TestPropertyDelays: delays do not depend on the order of what is listed, lie within the range, and are apart from each other evenly.
func TestPropertyDelays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.StringMatching(`[a-z0-9]{1,4}`), func(s string) string { return s }).Draw(rt, "names")
		minDelay := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(rt, "min"))
		maxDelay := minDelay + time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(rt, "range"))
		got := Delays(nodes(names...), nil, minDelay, maxDelay)
		expect.DeepEqual(rt, got, Delays(nodes(rapid.Permutation(names).Draw(rt, "order")...), nil, minDelay, maxDelay))
		slices.Sort(names)
		step, last := (maxDelay-minDelay)/time.Duration(max(1, len(names))), minDelay-1
		for i, name := range names {
			d, err := time.ParseDuration(got[name])
			expect.True(rt, err == nil && d >= minDelay-1 && d <= maxDelay, "%s waits %s, %v", name, got[name], err)
			if gap := d - last; i > 0 && (gap < step-2 || gap > step+2) {
				rt.Fatalf("%s waits %s more than the one before, want %s", name, gap, step)
			}
			last = d
		}
	})
}

func TestSerial(t *testing.T) {
	secret := func(namespace, name, role, serial string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{LabelRole: role, "x": "y"}, Annotations: map[string]string{AnnotationSerial: serial, "x": "y"}}}
	}
	all := []metav1.PartialObjectMetadata{secret("kube-system", "a", RoleConfiguration, "true"), secret("kube-system", "b", RoleConfiguration, "false"), secret("kube-system", "c", "x", "true"), secret("other", "d", RoleConfiguration, "true")}
	for i := range all {
		StripDelay(&all[i])
		expect.True(t, len(all[i].Labels) == 1 && len(all[i].Annotations) == 1, "stripped to %+v", all[i])
	}
	expect.DeepEqual(t, Serial(all), map[string]bool{"a": true}, "NRD-3")
}

func TestOutdated(t *testing.T) {
	on := func(key string, action corev1.UnsatisfiableConstraintAction) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{TopologyKey: key, WhenUnsatisfiable: action}
	}
	const host, zone, must, may = corev1.LabelHostname, corev1.LabelTopologyZone, corev1.DoNotSchedule, corev1.ScheduleAnyway
	for name, tc := range map[string]struct {
		constraints          []corev1.TopologySpreadConstraint
		withSeveral, withOne bool
	}{
		"NHA-4/none":             {nil, false, false},
		"NHA-4/zones only":       {[]corev1.TopologySpreadConstraint{on(zone, may)}, false, false},
		"NHA-4/may":              {[]corev1.TopologySpreadConstraint{on(zone, must), on(host, may)}, true, false},
		"NHA-4/must":             {[]corev1.TopologySpreadConstraint{on(host, must)}, false, true},
		"NHA-4/the first counts": {[]corev1.TopologySpreadConstraint{on(host, must), on(host, may)}, false, true},
	} {
		expect.True(t, Outdated(tc.constraints, true) == tc.withSeveral && Outdated(tc.constraints, false) == tc.withOne,
			"%s: got %v and %v", name, Outdated(tc.constraints, true), Outdated(tc.constraints, false))
	}
}

// Fields that are stripped decide nothing: the name and version of a Node that does not wait are kept, and nothing else.
func TestStripNode(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: types.UID("u"), ResourceVersion: "1", Labels: map[string]string{"a": "b"}}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "x"}}, ProviderID: "p"}, Status: corev1.NodeStatus{Phase: "x"}}
	StripNode(n)
	expect.DeepEqual(t, n, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "1"}})
}
