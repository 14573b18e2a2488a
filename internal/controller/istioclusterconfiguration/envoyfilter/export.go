package envoyfilter

import "slices"

// visible returns the namespaces in the export list of an object (ICC-6): none if the list is empty or has "~", all
// for "*", and the object's own for ".".
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
