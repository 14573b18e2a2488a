package extensionvalidation

import (
	"fmt"
	"net"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-project/espalier/internal/externalapi/extensions/specs"
)

const (
	ipv4 = "IPv4"
	ipv6 = "IPv6"
)

// network enforces EV-20 to EV-24.
func network(o *specs.Network) field.ErrorList {
	s := &o.Spec
	if wrong := ipFamilies(s.IPFamilies); len(wrong) > 0 {
		return wrong // The ranges can be checked only if the IP families are valid.
	}
	var all field.ErrorList
	pods, wrong := ipRange(spec.Child("podCIDR"), s.PodCIDR, s.IPFamilies)
	all = append(all, wrong...)
	services, wrong := ipRange(spec.Child("serviceCIDR"), s.ServiceCIDR, s.IPFamilies)
	all = append(all, wrong...)
	if slices.Equal(s.IPFamilies, []string{ipv6}) || pods == nil || services == nil {
		return all
	}
	if pods.Contains(services.IP) || services.Contains(pods.IP) {
		all = append(all, field.Invalid(spec.Child("serviceCIDR"), s.ServiceCIDR, fmt.Sprintf("must not overlap with %q (%q)", "spec.podCIDR", s.PodCIDR)))
	}
	return all
}

// ipFamilies requires known families, each at most once (EV-21).
func ipFamilies(families []string) field.ErrorList {
	var all field.ErrorList
	seen := map[string]bool{}
	for i, family := range families {
		path := spec.Child("ipFamilies").Index(i)
		switch {
		case seen[family]:
			all = append(all, field.Duplicate(path, family))
		default:
			all = append(all, oneOf(path, family, ipv4, ipv6)...)
		}
		seen[family] = true
	}
	return all
}

// ipRange parses a range and, if there is a single IP family, requires the range to be of that family (EV-22, EV-23).
// It returns nil if there is no range.
func ipRange(path *field.Path, value string, families []string) (*net.IPNet, field.ErrorList) {
	if value == "" {
		return nil, required(path, value)
	}
	_, parsed, err := net.ParseCIDR(value)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, value, err.Error())}
	}
	family := ipv4
	if len(families) > 0 {
		family = families[0]
	}
	if is := familyOf(parsed); len(families) < 2 && is != family {
		return parsed, field.ErrorList{field.Invalid(path, parsed.IP.String(), fmt.Sprintf("must be a valid %s address", family))}
	}
	return parsed, nil
}

func familyOf(r *net.IPNet) string {
	if r.IP.To4() != nil {
		return ipv4
	}
	return ipv6
}

// networkUpdate allows adding a second family to IPv4, and removing it again (EV-25).
func networkUpdate(now, old *specs.Network) field.ErrorList {
	is, was := now.Spec.IPFamilies, old.Spec.IPFamilies
	one, two := []string{ipv4}, []string{ipv4, ipv6}
	if slices.Equal(is, was) || slices.Equal(was, one) && slices.Equal(is, two) || slices.Equal(was, two) && slices.Equal(is, one) {
		return nil
	}
	return field.ErrorList{field.Forbidden(spec.Child("ipFamilies"), fmt.Sprintf("unsupported IP family update: oldIPFamilies=%v, newIPFamilies=%v", was, is))}
}
