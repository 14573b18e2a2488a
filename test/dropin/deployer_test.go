package dropin

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// asImages is what images have as their defaults (internal/tools/images). With grown, what was created just now is as good as old, so that the
// garbage collector checks it.
const (
	asImages = "profile: gardener\n"
	grown    = asImages + "controllers: {garbageCollector: {minimumAge: 0s}}\n"
)

// rightsName is the ManagedResource by which the deployer of a hosted shoot grants rights in the target.
const rightsName = "shoot-core-gardener-resource-manager"

// deployer plays the component by which gardenlet and gardener-operator deploy an executable: each reconcile renders all objects anew and writes
// them over what is there (3.4, 4.1).
type deployer struct {
	t *testing.T
	// on is the cluster of the executable, in is the one it looks after.
	on, in *audited
	// namespace and app are those of the Deployment, user is its ServiceAccount in the source.
	namespace, app, user string
	ca                   *authority
	filled               map[string]string
	objects              []*unstructured.Unstructured
	// defaults are those of the image.
	defaults string
	// requests is how many the API servers had written down when the deployer began, by user. Refusals count from accepted on.
	requests, accepted map[string]int
}

// newDeployer returns the deployer of a mode, with the image of an overwritten image vector.
func newDeployer(t *testing.T, m mode, source, target *audited) *deployer {
	t.Helper()
	d := &deployer{t: t, on: source, in: target, namespace: m.namespace, app: m.prefix + "gardener-resource-manager", ca: newAuthority(t), defaults: asImages}
	d.user = "system:serviceaccount:" + d.namespace + ":" + d.app
	d.filled = values(t, source, d.ca, d.app, m.namespace)
	maps.Copy(d.filled, map[string]string{"prefix": m.prefix, "clusterID": clusterID, "alwaysUpdate": "true", "target": target.URL(), "targetCA": base64.StdEncoding.EncodeToString(target.ca(t))})
	d.objects = m.objects(t, d.filled)
	d.setImage(overwritten(t, "gardener-resource-manager"))
	if d.hosted() {
		granted := newRelease(t, m.namespace, rightsName, append(ownRights(), registrations(t, m.hooks, d.filled, inSystem)...)...)
		d.add(granted.secret, granted.managedResource())
	} else {
		for _, configuration := range registrations(t, m.hooks, d.filled, inControlPlanes) {
			d.add(&unstructured.Unstructured{Object: configuration.(object)})
		}
	}
	d.begin()
	return d
}

// begin takes away what earlier tests left under the names of the deployer's objects, and counts requests from here on.
func (d *deployer) begin() {
	d.clear()
	d.requests = d.count()
	d.accepted = d.requests
}

// count counts the requests that the API servers have written down, by user.
func (d *deployer) count() map[string]int {
	return map[string]int{d.user: len(d.on.requests(d.t, d.user, all)), inTarget: len(d.in.requests(d.t, inTarget, all))}
}

// forgive lets no request that was refused so far count.
func (d *deployer) forgive() { d.accepted = d.count() }

// hosted: the target is another cluster, for which the executable gives itself a token.
func (d *deployer) hosted() bool { return d.on != d.in }

// add renders more objects.
func (d *deployer) add(objects ...client.Object) {
	for _, o := range objects {
		gvk, err := d.on.client.GroupVersionKindFor(o)
		must.Succeed(d.t, err)
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		must.Succeed(d.t, err)
		rendered := &unstructured.Unstructured{Object: fields}
		rendered.SetGroupVersionKind(gvk)
		delete(rendered.Object, "status")
		d.objects = append(d.objects, rendered)
	}
}

// deployment is the rendered Deployment.
func (d *deployer) deployment() *unstructured.Unstructured {
	return d.objects[slices.IndexFunc(d.objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })]
}

// setImage is what an overwritten image vector does to the rendering: nothing else of it changes.
func (d *deployer) setImage(image string) {
	containers, _, err := unstructured.NestedSlice(d.deployment().Object, "spec", "template", "spec", "containers")
	must.Succeed(d.t, err)
	containers[0].(object)["image"] = image
	must.Succeed(d.t, unstructured.SetNestedSlice(d.deployment().Object, containers, "spec", "template", "spec", "containers"))
}

// reconcile writes all objects over what is there, in the order of the rendering. It reports whether the executable has to bootstrap (DPL-3).
func (d *deployer) reconcile() (bootstraps bool) {
	d.t.Helper()
	bootstraps = d.mustBootstrap()
	for _, rendered := range d.objects {
		rendered = rendered.DeepCopy()
		if rendered.GetKind() == "Deployment" {
			if bootstraps {
				d.useBootstrap(rendered)
			}
			injectReferences(d.t, rendered)
		}
		d.write(rendered)
	}
	return bootstraps
}

// mustBootstrap: DPL-1.
func (d *deployer) mustBootstrap() bool {
	if !d.hosted() {
		return false
	}
	renewed, err := d.on.renewal(d.t.Context(), d.namespace, accessKey)
	if err != nil || time.Now().After(renewed) {
		return true
	}
	mr := &resourcesv1alpha1.ManagedResource{}
	err = d.on.client.Get(d.t.Context(), client.ObjectKey{Namespace: d.namespace, Name: rightsName}, mr)
	if apierrors.IsNotFound(err) {
		return true
	}
	must.Succeed(d.t, err)
	status, message := harness.Condition(mr, resourcesv1alpha1.ResourcesApplied)
	return strings.HasPrefix(status, "False/") &&
		(strings.Contains(message, `forbidden: User "`+inTarget+`" cannot`) || strings.Contains(message, ": Unauthorized"))
}

// useBootstrap renders the kubeconfig of the bootstrap in place of the one with the token (DPL-77).
func (d *deployer) useBootstrap(deployment *unstructured.Unstructured) {
	secret := bootstrapSecret(d.t, d.in, d.namespace)
	must.Succeed(d.t, client.IgnoreAlreadyExists(d.on.client.Create(d.t.Context(), secret)))
	spec, _, err := unstructured.NestedMap(deployment.Object, "spec", "template", "spec")
	must.Succeed(d.t, err)
	const name = "kubeconfig-bootstrap"
	for _, volume := range spec["volumes"].([]any) {
		if volume.(object)["name"] == "kubeconfig" {
			delete(volume.(object), "projected")
			maps.Copy(volume.(object), object{"name": name, "secret": object{"secretName": secret.Name, "defaultMode": int64(420)}})
		}
	}
	for _, mount := range spec["containers"].([]any)[0].(object)["volumeMounts"].([]any) {
		if mount.(object)["name"] == "kubeconfig" {
			mount.(object)["name"] = name
		}
	}
	must.Succeed(d.t, unstructured.SetNestedMap(deployment.Object, spec, "spec", "template", "spec"))
}

// injectReferences names all ConfigMaps and Secrets of a Deployment's volumes in its annotations (DPL-66, HLP-6).
func injectReferences(t *testing.T, deployment *unstructured.Unstructured) {
	t.Helper()
	spec := &corev1.PodSpec{}
	fields, _, err := unstructured.NestedMap(deployment.Object, "spec", "template", "spec")
	must.Succeed(t, err)
	must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, spec))
	references := map[string]string{}
	add := func(kind, name string) { references[referencesAre+kind+"-"+hash8([]byte(name))] = name }
	for _, volume := range spec.Volumes {
		sources := []corev1.VolumeProjection{}
		if volume.Projected != nil {
			sources = volume.Projected.Sources
		}
		if volume.ConfigMap != nil {
			add("configmap", volume.ConfigMap.Name)
		}
		if volume.Secret != nil {
			add("secret", volume.Secret.SecretName)
		}
		for _, source := range sources {
			if source.ConfigMap != nil {
				add("configmap", source.ConfigMap.Name)
			}
			if source.Secret != nil {
				add("secret", source.Secret.Name)
			}
		}
	}
	deployment.SetAnnotations(references)
	must.Succeed(t, unstructured.SetNestedStringMap(deployment.Object, references, "spec", "template", "metadata", "annotations"))
}

// write creates an object, or patches over it what the deployer renders.
func (d *deployer) write(rendered *unstructured.Unstructured) {
	d.t.Helper()
	live := rendered.DeepCopy()
	err := d.on.client.Get(d.t.Context(), client.ObjectKeyFromObject(rendered), live)
	if apierrors.IsNotFound(err) {
		must.Succeed(d.t, d.on.client.Create(d.t.Context(), rendered.DeepCopy()))
		return
	}
	must.Succeed(d.t, err)
	if isGeneration(rendered) {
		return // DPL-81: created, never updated.
	}
	changed := live.DeepCopy()
	overwrite(changed, rendered)
	must.Succeed(d.t, d.on.client.Patch(d.t.Context(), changed, client.MergeFrom(live)))
}

// isGeneration: each content has a name of its own. Only Secrets that ask for tokens are written again (DPL-83).
func isGeneration(o *unstructured.Unstructured) bool {
	return o.GetKind() == "ConfigMap" || o.GetKind() == "Namespace" || o.GetKind() == "Secret" && !asksForToken(o)
}

func asksForToken(o *unstructured.Unstructured) bool {
	return o.GetLabels()["resources.gardener.cloud/purpose"] == "token-requestor"
}

// overwrite sets what a rendering has, and nothing else: fields of a spec one by one, all else whole. Labels are replaced but where others may
// have some; annotations are merged.
func overwrite(live, rendered *unstructured.Unstructured) {
	for key, value := range rendered.Object {
		fields, isMap := value.(object)
		present, _ := live.Object[key].(object)
		switch {
		case slices.Contains([]string{"apiVersion", "kind", "metadata"}, key):
		case isMap && present != nil:
			maps.Copy(present, fields)
		default:
			live.Object[key] = value
		}
	}
	labels, annotations := rendered.GetLabels(), live.GetAnnotations()
	if slices.Contains([]string{"Service", "Secret", "ManagedResource"}, rendered.GetKind()) {
		labels = merged(live.GetLabels(), labels)
	}
	live.SetLabels(labels)
	live.SetAnnotations(merged(annotations, rendered.GetAnnotations()))
}

func merged(below, above map[string]string) map[string]string {
	result := maps.Clone(below)
	if result == nil {
		return above
	}
	maps.Copy(result, above)
	return result
}

// start starts a replica with the image.
func (d *deployer) start() *pod {
	d.t.Helper()
	p := d.on.startImage(d.t, d.namespace, d.app, d.defaults)
	p.ready()
	return p
}

// up deploys the executable until it needs no bootstrap any more, and returns a replica of what is deployed then, which leads.
func (d *deployer) up() *pod {
	d.t.Helper()
	var first *pod
	if d.reconcile() {
		first = d.start()
		eventually(d.t, bootstrapLimit, func() error {
			return expect.Holds(!d.mustBootstrap(), "DPL-1, DPL-3: it still has to bootstrap")
		})
		d.on.settled(d.t, d.namespace, rightsName)
		expect.False(d.t, d.reconcile(), "DPL-3: it has to bootstrap again")
		first.stop()
	}
	p := d.start()
	d.on.leadsAs(d.t, d.namespace, d.app)
	return p
}

// live are the versions of all objects of the deployer, and who has written to them.
func (d *deployer) live() (versions, writers map[string]string) {
	d.t.Helper()
	versions, writers = map[string]string{}, map[string]string{}
	for _, rendered := range d.objects {
		name, o := rendered.GetKind()+"/"+rendered.GetName(), rendered.DeepCopy()
		if err := d.on.client.Get(d.t.Context(), client.ObjectKeyFromObject(rendered), o); err != nil {
			versions[name] = err.Error()
			continue
		}
		versions[name] = string(o.GetUID()) + "/" + o.GetResourceVersion()
		for _, entry := range o.GetManagedFields() {
			if strings.HasSuffix(entry.Manager, "-manager") || strings.HasSuffix(entry.Manager, "-controller") {
				writers[name] = entry.Manager
			}
		}
	}
	return versions, writers
}

// rounds reconciles again and again while the executable works, and wants that nothing changes (DPL-81).
func (d *deployer) rounds(work func()) {
	d.t.Helper()
	before, _ := d.live()
	for round := range 3 {
		expect.False(d.t, d.reconcile(), "DPL-1: it has to bootstrap in round %d", round)
		work()
		after, writers := d.live()
		expect.DeepEqual(d.t, after, before, "DPL-81: round %d changed the deployer's objects", round)
		expect.DeepEqual(d.t, writers, d.shared(), "DPL-101: fields of objects of the deployer have other writers")
	}
}

// shared are the objects of the deployer that are there to be written to by resource-manager: it issues tokens, and it reports status.
func (d *deployer) shared() map[string]string {
	writers := map[string]string{}
	for _, rendered := range d.objects {
		if asksForToken(rendered) || rendered.GetKind() == "ManagedResource" {
			writers[rendered.GetKind()+"/"+rendered.GetName()] = "resource-manager"
		}
	}
	return writers
}

// judge wants that no request was refused and that nothing was deleted but what a test deletes, by a resource and its name.
func (d *deployer) judge(deleted ...string) {
	d.t.Helper()
	for user, on := range map[string]*audited{d.user: d.on, inTarget: d.in} {
		if user == inTarget && !d.hosted() {
			continue
		}
		var refused, gone []string
		number := 0
		on.requests(d.t, user, func(r *request) bool {
			number++
			if number > d.accepted[user] && forbidden(r) {
				refused = append(refused, r.String())
			}
			if number > d.requests[user] && strings.HasPrefix(r.Verb, "delete") && !slices.Contains(deleted, r.Object.Resource+"/"+r.Object.Name) && !d.isOthers(r) {
				gone = append(gone, r.String())
			}
			return false
		})
		expect.True(d.t, len(refused) == 0, "DPL-100, DPL-101: %s was refused: %v", user, refused)
		expect.True(d.t, len(gone) == 0, "GC-5: %s deleted %v", user, gone)
	}
}

// isOthers: the garbage collector of a seed may take generations that other tests have left.
func (d *deployer) isOthers(r *request) bool {
	generations := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret"}
	return d.defaults == grown && generations[r.Object.Resource] != "" && !slices.ContainsFunc(d.objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == generations[r.Object.Resource] && o.GetNamespace() == r.Object.Namespace && o.GetName() == r.Object.Name
	})
}

func all(*request) bool { return true }
