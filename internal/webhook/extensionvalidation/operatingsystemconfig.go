package extensionvalidation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-project/espalier/internal/externalapi/extensions/specs"
)

const provision = "provision"

// operatingSystemConfig enforces A13.6. Additions of extensions in the status are validated together with the
// specification, because both are written to the node.
func operatingSystemConfig(o *specs.OperatingSystemConfig) field.ErrorList {
	all := purpose(o.Spec.Purpose)
	if cri := o.Spec.CRIConfig; cri != nil {
		all = append(all, criConfig(cri, o.Spec.Purpose, spec.Child("criConfig"))...)
	}
	paths := map[string]bool{}
	for _, f := range slices.Concat(o.Spec.Files, o.Status.ExtensionFiles) {
		paths[f.Path] = true
	}
	status := field.NewPath("status")
	all = append(all, units(o.Spec.Units, paths, spec.Child("units"))...)
	all = append(all, units(o.Status.ExtensionUnits, paths, status.Child("extensionUnits"))...)
	seen := placed{}
	all = append(all, files(o.Spec.Files, seen, spec.Child("files"))...)
	return append(all, files(o.Status.ExtensionFiles, seen, status.Child("extensionFiles"))...)
}

func purpose(value string) field.ErrorList {
	if value == "" {
		return required(spec.Child("purpose"), value)
	}
	return oneOf(spec.Child("purpose"), value, provision, "reconcile")
}

func units(list []specs.Unit, paths map[string]bool, path *field.Path) field.ErrorList {
	var all field.ErrorList
	for i := range list {
		unit, at := &list[i], path.Index(i)
		all = append(all, requiredIn(at, "name", unit.Name)...)
		for j, dropIn := range unit.DropIns {
			all = append(all, requiredIn(at.Child("dropIns").Index(j), "name", dropIn.Name, "content", dropIn.Content)...)
		}
		for j, file := range unit.FilePaths {
			if !paths[file] {
				all = append(all, field.Invalid(at.Child("filePaths").Index(j), file, "'filePath' requires a matching 'path' in 'spec.files'"))
			}
		}
	}
	return all
}

// fileOn is a path on a host. Without a host it is the path on any host or, if everywhere is set, on all hosts.
type fileOn struct {
	path, host string
	everywhere bool
}

// placed are the files found so far, each also as its path on any host.
type placed map[fileOn]bool

// add adds a file, and reports whether another file has the same path on the same host.
func (p placed) add(path string, host *string) bool {
	anywhere, everywhere := fileOn{path: path}, fileOn{path: path, everywhere: true}
	taken := p[everywhere] || host == nil && p[anywhere]
	p[anywhere] = true
	if host == nil {
		p[everywhere] = true
		return taken
	}
	on := fileOn{path: path, host: "host " + *host}
	taken = taken || p[on]
	p[on] = true
	return taken
}

// files validates files, and adds them to seen.
func files(list []specs.File, seen placed, path *field.Path) field.ErrorList {
	var all field.ErrorList
	for i := range list {
		file, at := &list[i], path.Index(i)
		all = append(all, requiredIn(at, "path", file.Path)...)
		all = append(all, content(&file.Content, at.Child("content"))...)
		if file.HostName != nil {
			all = append(all, subdomain(at.Child("hostName"), *file.HostName)...)
		}
		if file.Path == "" {
			continue
		}
		if seen.add(file.Path, file.HostName) {
			all = append(all, field.Duplicate(at.Child("path"), file.Path))
		}
	}
	return all
}

const contentForm = "either 'secretRef', 'inline' or 'imageRef' must be provided"

// content validates the source of a file's content; no message has the content (WB-17).
func content(c *specs.FileContent, path *field.Path) field.ErrorList {
	given := 0
	for _, is := range []bool{c.SecretRef != nil, c.Inline != nil, c.ImageRef != nil} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		return field.ErrorList{field.Required(path, contentForm)}
	case given > 1:
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, contentForm+", not multiple at the same time")}
	case c.SecretRef != nil:
		return requiredIn(path.Child("secretRef"), "name", c.SecretRef.Name, "dataKey", c.SecretRef.DataKey)
	case c.ImageRef != nil:
		return requiredIn(path.Child("imageRef"), "image", c.ImageRef.Image, "filePathInImage", c.ImageRef.FilePathInImage)
	}
	return append(oneOf(path.Child("inline", "encoding"), c.Inline.Encoding, "", "b64"), requiredIn(path.Child("inline"), "data", c.Inline.Data)...)
}
