package main

import (
	"fmt"
	"regexp"
)

// referenceName is the name, in documents, of the system that they compare with, if they mention its version.
const referenceName = "v1.150.0-dev (b312835d)"

var referenceVersion = regexp.MustCompile(`v1\.150\S*(?: \([0-9a-f]+\))?`)

// checkReference returns an error for each line that names the version of the reference in another way. Code may have the version alone.
func checkReference(p *page) (problems []error) {
	for _, l := range p.lines {
		if l.code {
			continue
		}
		for _, name := range referenceVersion.FindAllString(l.text, -1) {
			if len(name) < len(referenceName) || name[:len(referenceName)] != referenceName {
				problems = append(problems, fmt.Errorf("%s:%d: the reference is %s, not %s", p.path, l.number, referenceName, name))
			}
		}
	}
	return problems
}
