// rights tells which rights of the executables no request of the tests used: they are too many, or something is not tested.
//
//	ESPALIER_REQUESTS=<folder> go test ./test/...
//	go run ./test/e2e/rights <folder>
//
// Clusters write into the folder what the executables asked for (test/env/cluster), and who had which rights (test/env/harness). A request counts
// for each feature that was on in the process and has the right for it: requests do not tell which feature sent them.
//
// unused.md says of which unused rights it is known why. Any other is named.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: rights <folder with what clusters were asked>")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(folder string) error {
	explained, err := explanations(reviewed)
	if err != nil {
		return err
	}
	granted, used, err := read(folder)
	if err != nil {
		return err
	}
	text, err := report(distinct(declared(), granted), used, explained)
	fmt.Print(text)
	return err
}
