package extensionvalidation

import (
	"bytes"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-project/espalier/internal/externalapi/extensions/specs"
)

// bastion requires at least one ingress.
func bastion(o *specs.Bastion) field.ErrorList {
	if len(o.Spec.Ingress) == 0 {
		return required(spec.Child("ingress"), "")
	}
	return nil
}

// bastionUpdate leaves user data out of messages, because it may contain secrets (WB-17).
func bastionUpdate(now, old *specs.Bastion) field.ErrorList {
	if bytes.Equal(now.Spec.UserData, old.Spec.UserData) {
		return nil
	}
	return field.ErrorList{field.Invalid(spec.Child("userData"), field.OmitValueType{}, apivalidation.FieldImmutableErrorMsg)}
}
