package envoyfilter

import "slices"

// visible returns the namespaces that an export list of an object in a namespace names (ICC-6): none if it is empty or
// names "~", all for "*", the own one for ".".
func visible(exportTo []string, own string, namespaces []string) []string {
	if slices.Contains(exportTo, "~") {
		return nil
	}
	var all []string
	for _, namespace := range namespaces {
		if slices.Contains(exportTo, "*") || slices.Contains(exportTo, namespace) || namespace == own && slices.Contains(exportTo, ".") {
			all = append(all, namespace)
		}
	}
	return all
}
