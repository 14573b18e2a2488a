package admissiontest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
)

// The pages about the webhooks of resource-manager and of admission-controller, and the registrations of both.
const (
	Document       = "../../../docs/concepts/webhooks.md"
	GardenDocument = "../../../docs/concepts/garden-webhooks.md"
	Registrations  = "../../../docs/internals/webhooks.md"
)

// Section returns the text of a section of a document, which begins with "## <title>".
func Section(t *testing.T, file, title string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(content), "\n## "+title+"\n")
	if !found {
		t.Fatalf("%s has no section %q", file, title)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// fenced matches a block of YAML, or a diff of two objects.
var fenced = regexp.MustCompile("(?ms)^```(?:yaml|diff)\n(.*?)^```")

// Blocks returns the YAML blocks and the diffs in a section of a document, which begins with "## <title>".
func Blocks(t *testing.T, file, title string) []string {
	t.Helper()
	var blocks []string
	for _, block := range fenced.FindAllStringSubmatch(Section(t, file, title), -1) {
		blocks = append(blocks, block[1])
	}
	return blocks
}

// Shown returns the blocks of a section of a document, and fails if their number is not the expected one.
func Shown(t *testing.T, file, title string, blocks int) []string {
	t.Helper()
	found := Blocks(t, file, title)
	if len(found) != blocks {
		t.Fatalf("%s: the section %s has %d blocks; wanted are %d", file, title, len(found), blocks)
	}
	return found
}

// Sides returns the objects before and after a diff.
func Sides(difference string) (before, after string) {
	for line := range strings.Lines(difference) {
		if !strings.HasPrefix(line, "+") {
			before += line[1:]
		}
		if !strings.HasPrefix(line, "-") {
			after += line[1:]
		}
	}
	return before, after
}

// Registered checks that the page of registrations has the entries of a webhook, without fields of the deployment.
func Registered[T any](t *testing.T, title string, entries ...T) {
	t.Helper()
	var shown []T
	if err := yaml.UnmarshalStrict([]byte(Shown(t, Registrations, title, 1)[0]), &shown); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(entries, shown); diff != "" {
		t.Errorf("the registration: -code, +document:\n%s", diff)
	}
}

// Example checks that a webhook makes the change in a document's diff.
func Example(t *testing.T, decide admission.Func, difference string) {
	t.Helper()
	before, after := Sides(difference)
	object, err := yaml.YAMLToJSON([]byte(before))
	if err != nil {
		t.Fatal(err)
	}
	result, admitted, err := Apply(decide, object)
	if err != nil || !admitted {
		t.Fatalf("admitted: %v, %v", admitted, err)
	}
	var got, want any
	if err := yaml.Unmarshal(result, &got); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(after), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the example: -document, +webhook:\n%s", diff)
	}
}

// Read decodes a block of a document, and fails for unknown fields.
func Read(t *testing.T, block string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(block), into); err != nil {
		t.Fatal(err)
	}
}
