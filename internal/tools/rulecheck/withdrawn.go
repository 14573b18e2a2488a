package main

import (
	"fmt"
	"strings"
)

// withdrawn is the page of rules whose behaviour was removed. Its IDs are never used again: they are defined nowhere else, and nothing refers to them.
const withdrawn = "withdrawn.md"

// usedAgain returns an error for each rule that is both withdrawn and defined, and adds the prefixes of withdrawn rules to the contract, so that
// references to them are found.
func usedAgain(contract *contract, rules []string) []error {
	var again []error
	for _, rule := range rules {
		if family, all := strings.CutSuffix(rule, "*"); all {
			contract.prefixes[family] = true
		} else {
			contract.prefixes[prefix(rule)] = true
		}
		for _, id := range covered(rule, contract) {
			// SR-4 may go while its part SR-4e stays: a part counts only if it was withdrawn by name.
			if id == rule || strings.HasSuffix(rule, "*") {
				again = append(again, fmt.Errorf("%s is withdrawn in docs/internals/contract/%s, but defined again", id, withdrawn))
			}
		}
	}
	return again
}
