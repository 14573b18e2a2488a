package extensionvalidation

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

var spec = field.NewPath("spec")

// required requires a value (EV-7).
func required(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "field is required")}
	}
	return nil
}

// requiredIn requires values for fields below a path, given as pairs of names and values.
func requiredIn(path *field.Path, namesAndValues ...string) field.ErrorList {
	var all field.ErrorList
	for i := 0; i < len(namesAndValues); i += 2 {
		all = append(all, required(path.Child(namesAndValues[i]), namesAndValues[i+1])...)
	}
	return all
}

// oneOf requires one of the allowed values. They are sorted for the message.
func oneOf(path *field.Path, value string, allowed ...string) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// subdomain requires an RFC 1123 subdomain, and returns an error for each violation.
func subdomain(path *field.Path, value string) field.ErrorList {
	var all field.ErrorList
	for _, why := range validation.IsDNS1123Subdomain(value) {
		all = append(all, field.Invalid(path, value, why))
	}
	return all
}

// address requires an IP address. Leading zeros are accepted, for compatibility.
func address(path *field.Path, value string) field.ErrorList {
	if netutils.ParseIPSloppy(value) != nil {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")}
}

const urlForm = "; desired format: https://host[:port]"

// link requires a URL with a host and, if schemes are given, with one of them. Messages leave out the parts that may
// contain a password.
func link(path *field.Path, value string, schemes ...string) field.ErrorList {
	u, err := url.Parse(value)
	var displayed any = value
	if strings.Contains(value, "@") {
		displayed = field.OmitValueType{}
		if err != nil {
			err = fmt.Errorf("it cannot be parsed")
		}
	}
	if err != nil {
		return field.ErrorList{field.Required(path, fmt.Sprintf("url must be a valid URL: %v%s", err, urlForm))}
	}
	var all field.ErrorList
	if len(schemes) > 0 {
		all = oneOf(path, u.Scheme, schemes...)
	}
	if u.Host == "" {
		all = append(all, field.Invalid(path, displayed, "host must be provided"+urlForm))
	}
	return all
}
