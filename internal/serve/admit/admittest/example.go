package admittest

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/serve/admit"
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

// Example checks that a webhook makes of a document's first object its second one.
func Example(t *testing.T, decide admit.Func, before, after string) {
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
