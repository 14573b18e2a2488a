package admissiontest

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
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

// Blocks returns the YAML blocks of a section of a document, which begins with "## <title>".
func Blocks(t *testing.T, file, title string) []string {
	t.Helper()
	section := Section(t, file, title)
	var blocks []string
	for _, part := range strings.Split(section, "```yaml\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	return blocks
}

// Shown returns the YAML blocks of a webhook's section of a document, and fails if their number is wrong.
func Shown(t *testing.T, file, title string, blocks int) []string {
	t.Helper()
	found := Blocks(t, file, title)
	if len(found) != blocks {
		t.Fatalf("the section has %d blocks; wanted are %d", len(found), blocks)
	}
	return found
}

// Registered checks that a document shows how a webhook is registered. Fields that the deployment adds are not shown.
func Registered(t *testing.T, entry admissionregistrationv1.MutatingWebhook, document string) {
	t.Helper()
	var shown []admissionregistrationv1.MutatingWebhook
	if err := yaml.UnmarshalStrict([]byte(document), &shown); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]admissionregistrationv1.MutatingWebhook{entry}, shown); diff != "" {
		t.Errorf("the registration: -code, +document:\n%s", diff)
	}
}

// Example checks that a webhook makes of a document's first object its second one.
func Example(t *testing.T, decide admission.Func, before, after string) {
	t.Helper()
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

// Read decodes a block of a document, without unknown fields.
func Read(t *testing.T, block string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(block), into); err != nil {
		t.Fatal(err)
	}
}
