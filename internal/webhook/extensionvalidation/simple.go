package extensionvalidation

import (
	"bytes"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-project/espalier/internal/externalapi/extensions/specs"
)

// The kinds whose rules are in the table of A13.3 and nowhere else.

func backupBucket(o *specs.BackupBucket) field.ErrorList {
	return append(requiredIn(spec, "type", o.Spec.Type, "region", o.Spec.Region), secretRef(o.Spec.SecretRef)...)
}

func backupBucketUpdate(now, old *specs.BackupBucket) field.ErrorList {
	return immutableIn("type", now.Spec.Type, old.Spec.Type, "region", now.Spec.Region, old.Spec.Region)
}

func backupEntry(o *specs.BackupEntry) field.ErrorList {
	return append(requiredIn(spec, "type", o.Spec.Type, "bucketName", o.Spec.BucketName, "region", o.Spec.Region), secretRef(o.Spec.SecretRef)...)
}

func backupEntryUpdate(now, old *specs.BackupEntry) field.ErrorList {
	return immutableIn("type", now.Spec.Type, old.Spec.Type)
}

func bastion(o *specs.Bastion) field.ErrorList {
	all := requiredIn(spec, "type", o.Spec.Type, "userData", string(o.Spec.UserData))
	if len(o.Spec.Ingress) == 0 {
		all = append(all, required(spec.Child("ingress"), "")...)
	}
	return all
}

// bastionUpdate does not show user data, which may hold secrets (WB-17).
func bastionUpdate(now, old *specs.Bastion) field.ErrorList {
	all := immutableIn("type", now.Spec.Type, old.Spec.Type)
	if !bytes.Equal(now.Spec.UserData, old.Spec.UserData) {
		all = append(all, field.Invalid(spec.Child("userData"), field.OmitValueType{}, apivalidation.FieldImmutableErrorMsg))
	}
	return all
}

func containerRuntime(o *specs.ContainerRuntime) field.ErrorList {
	return append(requiredIn(spec, "type", o.Spec.Type, "binaryPath", o.Spec.BinaryPath), required(spec.Child("workerPool", "name"), o.Spec.WorkerPool.Name)...)
}

func containerRuntimeUpdate(now, old *specs.ContainerRuntime) field.ErrorList {
	return immutableIn("type", now.Spec.Type, old.Spec.Type, "workerPool.name", now.Spec.WorkerPool.Name, old.Spec.WorkerPool.Name)
}

func controlPlane(o *specs.ControlPlane) field.ErrorList {
	return append(requiredIn(spec, "type", o.Spec.Type, "region", o.Spec.Region), secretRef(o.Spec.SecretRef)...)
}

func controlPlaneUpdate(now, old *specs.ControlPlane) field.ErrorList {
	return immutableIn("type", now.Spec.Type, old.Spec.Type, "region", now.Spec.Region, old.Spec.Region)
}

func extension(o *specs.Extension) field.ErrorList {
	return requiredIn(spec, "type", o.Spec.Type)
}

func extensionUpdate(now, old *specs.Extension) field.ErrorList {
	return immutableIn("type", now.Spec.Type, old.Spec.Type)
}

func infrastructure(o *specs.Infrastructure) field.ErrorList {
	return append(requiredIn(spec, "type", o.Spec.Type, "region", o.Spec.Region), secretRef(o.Spec.SecretRef)...)
}

func infrastructureUpdate(now, old *specs.Infrastructure) field.ErrorList {
	return immutableIn("type", now.Spec.Type, old.Spec.Type, "region", now.Spec.Region, old.Spec.Region)
}

// secretRef wants a name; the namespace is not required (EV-7).
func secretRef(ref specs.SecretReference) field.ErrorList {
	return required(spec.Child("secretRef", "name"), ref.Name)
}
