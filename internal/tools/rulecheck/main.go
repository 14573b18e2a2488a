// rulecheck compares docs/internals/contract, code, tests and documents. It fails if
//
//   - an ID is defined twice, or is defined although docs/internals/contract/withdrawn.md lists it,
//   - code, a test or a document refers to an ID that is not defined,
//   - a rule is neither named by a test nor explained in docs/internals/contract/untested.md, or is explained there although a test names it.
//
// A test names a rule in the name of a case or in the message of an assertion; a comment asserts nothing. It prints which rules no test names.
//
//	rulecheck <root of the repository>
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: rulecheck <root of the repository>")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rulecheck:", err)
		os.Exit(1)
	}
}

func check(root string, out io.Writer) error {
	folder := filepath.Join(root, "docs", "internals", "contract")
	contract, twice, err := readContract(folder)
	if err != nil {
		return err
	}
	gone, err := readExplanations(filepath.Join(folder, withdrawn))
	if err != nil {
		return err
	}
	twice = append(twice, usedAgain(contract, gone)...)
	references, err := references(root, contract)
	if err != nil {
		return err
	}
	explanations, err := readExplanations(filepath.Join(folder, untested))
	if err != nil {
		return err
	}
	named := namedByTests(references, contract)
	return errors.Join(append(twice, undefined(references, contract), judge(out, contract, named, explanations))...)
}

// undefined returns an error that names every reference to an ID that is not defined.
func undefined(references []reference, contract *contract) error {
	var lines []string
	for _, r := range references {
		if len(contract.meant(r.id)) == 0 {
			lines = append(lines, fmt.Sprintf("%s:%d: %s is not defined in docs/internals/contract", r.path, r.line, r.id))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("%d references to nothing:\n%s", len(lines), strings.Join(lines, "\n"))
}
