// Package must ends a test at the first error of a step that has to succeed before the test can assert anything.
package must

// TB is the part of testing.TB that rapid.T has as well.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Succeed ends the test if err is not nil.
func Succeed(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
