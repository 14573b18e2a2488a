package extensionvalidation

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/externalapi/extensions/specs"
)

// criConfig validates the configuration of a container runtime.
func criConfig(cri *specs.CRIConfig, purpose string, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if cri.CgroupDriver != nil {
		all = oneOf(path.Child("cgroupDriver"), *cri.CgroupDriver, "cgroupfs", "systemd")
	}
	at := path.Child("containerd")
	switch {
	case cri.Containerd == nil:
		return all
	case purpose == provision:
		return append(all, field.Forbidden(at, "containerd config is not allowed for OperatingSystemConfig with purpose 'provision'"))
	}
	all = append(all, registries(cri.Containerd.Registries, at.Child("registries"))...)
	all = append(all, requiredIn(at, "sandboxImage", cri.Containerd.SandboxImage)...)
	return append(all, plugins(cri.Containerd.Plugins, at.Child("plugins"))...)
}

func registries(list []specs.RegistryConfig, path *field.Path) field.ErrorList {
	var all field.ErrorList
	known := map[string]bool{}
	for i := range list {
		registry, at := &list[i], path.Index(i)
		if known[registry.Upstream] {
			all = append(all, field.Duplicate(at.Child("upstream"), registry.Upstream))
		}
		known[registry.Upstream] = true
		all = append(all, upstream(at.Child("upstream"), registry.Upstream)...)
		if registry.Server != nil {
			all = append(all, link(at.Child("server"), *registry.Server, "http", "https")...)
		}
		for j, host := range registry.Hosts {
			all = append(all, link(at.Child("hosts").Index(j).Child("url"), host.URL)...)
			for k, capability := range host.Capabilities {
				all = append(all, oneOf(at.Child("hosts").Index(j).Child("capabilities").Index(k), capability, "pull", "push", "resolve")...)
			}
		}
	}
	return all
}

// upstream requires _default or a host, with or without a port.
func upstream(path *field.Path, value string) field.ErrorList {
	if value == "_default" {
		return nil
	}
	host := value
	var all field.ErrorList
	if i := strings.LastIndex(value, ":"); i >= 0 && digits(value[i+1:]) {
		host = value[:i]
		port := value[i+1:]
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || port[0] == '0' {
			all = append(all, field.Invalid(path, value, fmt.Sprintf("port '%s' is not valid, valid port must be in the range [1, 65535]", port)))
		}
	}
	for _, err := range subdomain(path, host) {
		err.BadValue = value
		all = append(all, err)
	}
	return all
}

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

const remove = "remove"

// plugins validates the configuration of containerd's plugins. Values may contain credentials, so no message has them
// (WB-17).
func plugins(list []specs.PluginConfig, path *field.Path) field.ErrorList {
	var all field.ErrorList
	for i := range list {
		plugin, at := &list[i], path.Index(i)
		if plugin.Op != nil {
			all = append(all, oneOf(at.Child("op"), *plugin.Op, "add", remove)...)
		}
		if len(plugin.Path) == 0 {
			all = append(all, field.Required(at.Child("path"), "must provide a path"))
		}
		if plugin.Values == nil {
			continue
		}
		if plugin.Op != nil && *plugin.Op == remove {
			all = append(all, field.Forbidden(at.Child("values"), "values must not be specified when 'remove' operation is used"))
			continue
		}
		var values map[string]json.RawMessage
		if err := admission.Unmarshal(plugin.Values.Raw, &values); err != nil && len(plugin.Values.Raw) > 0 {
			all = append(all, field.Invalid(at.Child("values"), field.OmitValueType{}, "provided values must be given in json format"))
		}
	}
	return all
}
