package fake

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	validatecontent "k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (s *Server) create(k *Kind, r *Request) (Object, error) {
	o, err := decodeBody(r.Body)
	if err != nil {
		return nil, err
	}
	metadata := meta(o)
	name := text(o, "metadata", "name")
	if err := s.checkNamespace(k, r, metadata); err != nil {
		return nil, err
	}
	if text(o, "kind") != "" && text(o, "kind") != k.Kind {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s", text(o, "kind"), k.Version, k.Kind))
	}
	if text(o, "metadata", "resourceVersion") != "" {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: "resourceVersion should not be set on objects to be created"}}
	}
	key := r.Key()
	key.Name = name
	if k.Status {
		delete(o, "status")
	}
	s.stamp(o)
	if k.Counts {
		metadata["generation"] = int64(1)
	}
	if k.Defaults != nil {
		k.Defaults(o)
	}
	if errs := validate(k, o, nil); len(errs) > 0 {
		return nil, apierrors.NewInvalid(k.GroupKind(), name, errs)
	}
	if s.objects[key] != nil {
		return nil, apierrors.NewAlreadyExists(k.groupResource(), name)
	}
	o["kind"], o["apiVersion"] = k.Kind, k.GroupVersion().String()
	fieldsManaged(r, k, Object{}, o)
	s.put(r.By, "create", key, nil, o)
	return o, nil
}

// issue answers for what is created and not stored.
func (s *Server) issue(k *Kind, r *Request) (Object, error) {
	sent, err := decodeBody(r.Body)
	if err != nil {
		return nil, err
	}
	if k.Answer != nil {
		return k.Answer(sent)
	}
	of, err := s.find(k, r.Key())
	if err != nil {
		return nil, err
	}
	answer := k.Issue[r.Subresource]
	if answer == nil {
		return nil, apierrors.NewMethodNotSupported(k.groupResource(), "create")
	}
	return answer(of, sent)
}

func (s *Server) checkNamespace(k *Kind, r *Request, metadata Object) error {
	if !k.Namespaced {
		delete(metadata, "namespace")
		return nil
	}
	if inBody, _ := metadata["namespace"].(string); inBody != "" && inBody != r.Namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	metadata["namespace"] = r.Namespace
	namespaces := schema.GroupResource{Resource: "namespaces"}
	if r.Verb != "create" {
		return nil
	}
	switch namespace := s.objects[Key{GroupResource: namespaces, Name: r.Namespace}]; {
	case namespace == nil:
		return apierrors.NewNotFound(namespaces, r.Namespace)
	case meta(namespace)["deletionTimestamp"] != nil:
		err := apierrors.NewForbidden(k.groupResource(), text(metadata, "name"), fmt.Errorf("unable to create new content in namespace %s because it is being terminated", r.Namespace))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "NamespaceTerminating", Message: "namespace " + r.Namespace + " is being terminated", Field: "metadata.namespace"}}
		return err
	}
	return nil
}

func validate(k *Kind, o, old Object) field.ErrorList {
	var errs field.ErrorList
	name := text(o, "metadata", "name")
	at := field.NewPath("metadata", "name")
	if name == "" {
		errs = append(errs, field.Required(at, "name or generateName is required"))
	} else if reasons := append(validation.IsDNS1123Subdomain(name), validatecontent.IsPathSegmentName(name)...); len(reasons) > 0 {
		errs = append(errs, field.Invalid(at, name, strings.Join(reasons, ",")))
	}
	if k.Validate != nil {
		errs = append(errs, k.Validate(o, old)...)
	}
	return errs
}

// change carries out an update or a patch.
func (s *Server) change(k *Kind, r *Request) (Object, error) {
	key := r.Key()
	old, err := s.find(k, key)
	if err != nil {
		return nil, err
	}
	sent, err := decodeBody(r.Body)
	if err != nil {
		return nil, err
	}
	next := sent
	if r.Verb == "patch" {
		if r.ContentType != "application/merge-patch+json" {
			return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 415, Reason: metav1.StatusReasonUnsupportedMediaType, Message: "only merge patches are simulated"}}
		}
		next = mergePatch(runtime.DeepCopyJSON(old), sent)
	}
	if err := s.checkNamespace(k, r, meta(next)); err != nil {
		return nil, err
	}
	if name := text(next, "metadata", "name"); name != key.Name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, key.Name))
	}
	if err := checkIdentity(k, r, next, old); err != nil {
		return nil, err
	}
	next = inherit(k, r, next, old)
	if k.Defaults != nil {
		k.Defaults(next)
	}
	if errs := append(validate(k, next, old), noNewFinalizers(next, old)...); len(errs) > 0 {
		return nil, apierrors.NewInvalid(k.GroupKind(), key.Name, errs)
	}
	if k.Counts && r.Subresource == "" && !reflect.DeepEqual(content(next), content(old)) {
		meta(next)["generation"] = generation(old) + 1
	}
	if reflect.DeepEqual(next, old) {
		return old, nil
	}
	if meta(next)["deletionTimestamp"] != nil && len(list(meta(next)["finalizers"])) == 0 {
		s.put(r.By, r.Verb, key, old, nil)
		return next, nil
	}
	fieldsManaged(r, k, old, next)
	s.put(r.By, r.Verb, key, old, next)
	return next, nil
}

// noNewFinalizers refuses to hold up a deletion that has begun.
func noNewFinalizers(next, old Object) field.ErrorList {
	added := slices.DeleteFunc(list(meta(next)["finalizers"]), func(f any) bool { return slices.Contains(list(meta(old)["finalizers"]), f) })
	if meta(old)["deletionTimestamp"] == nil || len(added) == 0 {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "finalizers"), "no new finalizers can be added if the object is being deleted")}
}

// checkIdentity compares what a write says about the object that it means with the one that is there.
func checkIdentity(k *Kind, r *Request, next, old Object) error {
	if uid := text(next, "metadata", "uid"); uid != "" && uid != text(old, "metadata", "uid") {
		if r.Verb == "patch" {
			return apierrors.NewInvalid(k.GroupKind(), r.Name, field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable")})
		}
		return apierrors.NewConflict(k.groupResource(), r.Name, fmt.Errorf("Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, text(old, "metadata", "uid"))) //nolint:staticcheck,revive // the API server's words
	}
	version := text(next, "metadata", "resourceVersion")
	if version == "" && k.Custom && r.Verb == "update" {
		return apierrors.NewInvalid(schema.GroupKind{Group: k.Group, Kind: k.Resource}, r.Name, field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), "0x0", "must be specified for an update")})
	}
	if version != "" && version != text(old, "metadata", "resourceVersion") {
		return apierrors.NewConflict(k.groupResource(), r.Name, fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

// inherit takes over what a write can't change.
func inherit(k *Kind, r *Request, next, old Object) Object {
	metadata, before := meta(next), meta(old)
	switch {
	case r.Subresource == "status", r.Subresource == "approval":
		status, found := next["status"]
		next = runtime.DeepCopyJSON(old)
		if delete(next, "status"); found {
			next["status"] = status
		}
		return next
	case k.Status:
		if delete(next, "status"); old["status"] != nil {
			next["status"] = old["status"]
		}
	}
	for _, name := range []string{"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion", "managedFields"} {
		if delete(metadata, name); before[name] != nil {
			metadata[name] = before[name]
		}
	}
	for _, name := range []string{"finalizers", "labels", "annotations", "ownerReferences"} {
		if value := reflect.ValueOf(metadata[name]); metadata[name] != nil && value.Len() == 0 || metadata[name] == nil {
			delete(metadata, name)
		}
	}
	next["kind"], next["apiVersion"] = k.Kind, k.GroupVersion().String()
	return next
}

func list(value any) []any {
	l, _ := value.([]any)
	return slices.Clone(l)
}

func generation(o Object) int64 {
	n, _ := strconv.ParseInt(text(o, "metadata", "generation"), 10, 64)
	return n
}

func mergePatch(onto, patch Object) Object {
	for name, value := range patch {
		nested, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(onto, name)
		case isObject:
			below, _ := onto[name].(map[string]any)
			if below == nil {
				below = Object{}
			}
			onto[name] = mergePatch(below, nested)
		default:
			onto[name] = value
		}
	}
	return onto
}

func (s *Server) remove(k *Kind, r *Request) (Object, error) {
	if r.Name == "" {
		return nil, apierrors.NewMethodNotSupported(k.groupResource(), "deletecollection")
	}
	key := r.Key()
	old, err := s.find(k, key)
	if err != nil {
		return nil, err
	}
	var options metav1.DeleteOptions
	if len(r.Body) > 0 {
		if err := utiljson.Unmarshal(r.Body, &options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if p := options.Preconditions; p != nil {
		for _, c := range []struct {
			what        string
			wanted, has string
		}{{"UID", pointed(p.UID), text(old, "metadata", "uid")}, {"ResourceVersion", pointed(p.ResourceVersion), text(old, "metadata", "resourceVersion")}} {
			if c.wanted != "" && c.wanted != c.has {
				kind := schema.GroupResource{Group: k.Group, Resource: k.Kind}
				return nil, apierrors.NewConflict(kind, r.Name, fmt.Errorf("Precondition failed: %s in precondition: %s, %s in object meta: %s", c.what, c.wanted, c.what, c.has)) //nolint:staticcheck,revive // the API server's words
			}
		}
	}
	finalizers := list(meta(old)["finalizers"])
	if policy := options.PropagationPolicy; policy != nil && *policy == metav1.DeletePropagationForeground && !slices.Contains(finalizers, any(metav1.FinalizerDeleteDependents)) {
		finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
	}
	if len(finalizers) == 0 {
		s.put(r.By, "delete", key, old, nil)
		return Object{"kind": "Status", "apiVersion": "v1", "metadata": Object{}, "status": "Success", "details": Object{
			"name": r.Name, "group": k.Group, "kind": k.Resource, "uid": text(old, "metadata", "uid"),
		}}, nil
	}
	if meta(old)["deletionTimestamp"] != nil {
		return old, nil
	}
	next := maps.Clone(old)
	next["metadata"] = maps.Clone(meta(old))
	metadata := meta(next)
	metadata["finalizers"] = finalizers
	metadata["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	metadata["deletionGracePeriodSeconds"] = int64(0)
	if generation(old) > 0 {
		metadata["generation"] = generation(old) + 1
	}
	s.put(r.By, "delete", key, old, next)
	return next, nil
}

func pointed[T ~string](p *T) string {
	if p == nil {
		return ""
	}
	return string(*p)
}

func deletedAt(r record) Object {
	last := runtime.DeepCopyJSON(r.before)
	meta(last)["resourceVersion"] = strconv.FormatInt(r.revision, 10)
	return last
}

func sortedKeys(objects map[Key]Object, selected func(Key, Object) bool) []Key {
	var keys []Key
	for key, o := range objects {
		if selected(key, o) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

func trimPath(p string) string {
	if version, found := strings.CutPrefix(p, "/api/"); found {
		return strings.Trim(version, "/")
	}
	return strings.Trim(strings.TrimPrefix(p, "/apis/"), "/")
}
