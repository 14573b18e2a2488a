package extensionvalidation

import (
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	druidv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/druid/v1alpha1"
)

// storageProviders are the names of object stores, in all accepted spellings (EV-43).
var storageProviders = []string{
	"", "aws", "S3", "stackit", "azure", "ABS", "alicloud", "OSS", "openstack", "Swift", "gcp", "GCS", "dell", "ECS", "openshift", "OCS", "Local", "local",
}

// etcd enforces EV-41 to EV-43. The prefix identifies the owner of the backups.
func etcd(o *druidv1alpha1.Etcd) field.ErrorList {
	store, path := o.Spec.Backup.Store, spec.Child("backup", "store")
	if store == nil {
		return nil
	}
	var all field.ErrorList
	if !strings.Contains(store.Prefix, o.Namespace) || !strings.Contains(store.Prefix, o.Name) {
		all = append(all, field.Invalid(path.Child("prefix"), store.Prefix, "must contain object name and namespace"))
	}
	if p := store.Provider; p != nil && !slices.Contains(storageProviders, *p) {
		all = append(all, field.Invalid(path.Child("provider"), *p, "unsupported storage provider: '"+*p+"'"))
	}
	return all
}

// etcdUpdate enforces EV-45.
func etcdUpdate(now, old *druidv1alpha1.Etcd) field.ErrorList {
	var all field.ErrorList
	if is, was := now.Spec.Backup.Store, old.Spec.Backup.Store; is != nil && was != nil {
		all = apivalidation.ValidateImmutableField(is.Prefix, was.Prefix, spec.Child("backup", "store", "prefix"))
	}
	return append(all, apivalidation.ValidateImmutableField(now.Spec.MemberNamePrefix, old.Spec.MemberNamePrefix, spec.Child("memberNamePrefix"))...)
}
