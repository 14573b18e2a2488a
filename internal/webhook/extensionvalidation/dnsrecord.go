package extensionvalidation

import (
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-project/espalier/internal/externalapi/extensions/specs"
)

// dnsRecord enforces A13.4.
func dnsRecord(o *specs.DNSRecord) field.ErrorList {
	s := &o.Spec
	var all field.ErrorList
	for _, optional := range []struct {
		name  string
		value *string
	}{{"region", s.Region}, {"zone", s.Zone}} {
		if optional.value != nil && *optional.value == "" {
			all = append(all, field.Invalid(spec.Child(optional.name), *optional.value, "field cannot be empty if specified"))
		}
	}
	name := strings.TrimPrefix(s.Name, "*.")
	if s.RecordType == "TXT" {
		name = strings.TrimPrefix(s.Name, "_")
	}
	all = append(all, validation.IsFullyQualifiedDomainName(spec.Child("name"), name)...)
	all = append(all, oneOf(spec.Child("recordType"), s.RecordType, "A", "AAAA", "CNAME", "TXT")...)
	all = append(all, dnsValues(s.RecordType, s.Values, spec.Child("values"))...)
	if s.TTL != nil && (*s.TTL < 0 || *s.TTL > math.MaxInt32) {
		all = append(all, field.Invalid(spec.Child("ttl"), *s.TTL, validation.InclusiveRangeError(0, math.MaxInt32)))
	}
	return all
}

// dnsValues validates the values according to the record type. Addresses of both families are valid for A and AAAA,
// for compatibility (WB-19).
func dnsValues(recordType string, values []string, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if len(values) == 0 {
		all = append(all, field.Required(path, "field is required"))
	}
	if recordType == "CNAME" && len(values) > 1 {
		all = append(all, field.Invalid(path, values, "CNAME records must have a single value"))
	}
	for i, value := range values {
		switch recordType {
		case "A", "AAAA":
			all = append(all, address(path.Index(i), value)...)
		case "CNAME":
			all = append(all, validation.IsFullyQualifiedDomainName(path.Index(i), value)...)
		}
	}
	return all
}
