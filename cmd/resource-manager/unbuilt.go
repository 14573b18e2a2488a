package main

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
)

// built are the features that can be switched on. Every other field "enabled" of the configuration is one that this version
// does not have: whoever switches it on relies on it, so that doing without it in silence would be worse than not starting.
var built = []string{
	"controllers.csrApprover.enabled",

	"webhooks.crdDeletionProtection.enabled",
	"webhooks.nodeAgentAuthorizer.enabled",
	"webhooks.seccompProfile.enabled",
}

// unbuilt returns an error for each feature that is switched on and not part of this version, except for those given.
func unbuilt(cfg *config.ResourceManagerConfiguration, except []string) field.ErrorList {
	var all field.ErrorList
	for path, on := range switches(cfg) {
		if name := path.String(); on && !slices.Contains(built, name) && !slices.Contains(except, name) {
			all = append(all, field.Forbidden(path, "is not part of this version; leave it off"))
		}
	}
	slices.SortFunc(all, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return all
}

// switches are the fields "enabled" of all controllers and webhooks, and what they say.
func switches(cfg *config.ResourceManagerConfiguration) map[*field.Path]bool {
	all := map[*field.Path]bool{}
	for section, value := range map[string]reflect.Value{"controllers": reflect.ValueOf(cfg.Controllers), "webhooks": reflect.ValueOf(cfg.Webhooks)} {
		for i := range value.NumField() {
			feature := value.Field(i)
			if feature.Kind() != reflect.Struct {
				continue
			}
			if enabled := feature.FieldByName("Enabled"); enabled.IsValid() {
				name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
				all[field.NewPath(section, name, "enabled")] = enabled.Bool()
			}
		}
	}
	return all
}
