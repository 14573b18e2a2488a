package main

import (
	"fmt"
	"regexp"
	"strings"
)

// part is one of those with dots between them after X.Y.Z: a number has no zeros before it.
const part = `(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)`

// semantic is the form of versions: images are tagged with them and charts have them without the v. No build metadata: a tag can't have its plus.
var semantic = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-` + part + `(\.` + part + `)*)?$`)

func checkVersion(version string) error {
	if !semantic.MatchString(version) {
		return fmt.Errorf("%q is no version: vX.Y.Z is, or vX.Y.Z-<text>", version)
	}
	return nil
}

// chartVersion is the version of the charts of a release, which Helm wants without the v.
func (o *options) chartVersion() string { return strings.TrimPrefix(o.version, "v") }
