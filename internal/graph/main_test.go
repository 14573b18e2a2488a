package graph

import (
	"flag"
	"os"
	"testing"
)

// The property is checked with more sequences than rapid's default unless the command line says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		_ = flag.Set("rapid.checks", "1000")
	}
	os.Exit(m.Run())
}
