package main

import (
	"fmt"
	"regexp"
	"strings"
)

// part is a part of a version after X.Y.Z, between dots. A number has no leading zeros.
const part = `(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)`

// semantic is the form of versions: images are tagged with them and charts have them without the v. No build metadata: a tag can't have its plus.
var semantic = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-` + part + `(\.` + part + `)*)?$`)

func checkVersion(version string) error {
	if !semantic.MatchString(version) {
		return fmt.Errorf("%q is no version: vX.Y.Z is, or vX.Y.Z-<text>", version)
	}
	return nil
}

// chartVersion returns the version of the charts of a release, which Helm requires without the v.
func (o *options) chartVersion() string { return strings.TrimPrefix(o.version, "v") }
