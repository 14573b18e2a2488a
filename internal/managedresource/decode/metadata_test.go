package decode

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
)

// MRB-14: a string that is none is refused by name, before it would count as empty.
func TestDecode_RefusesMetadataOfOtherTypes(t *testing.T) {
	for name, tc := range map[string]struct {
		object map[string]any
		want   string
	}{
		"MRB-14/strings":          {map[string]any{"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "a"}}, ""},
		"MRB-14/nothing":          {map[string]any{"apiVersion": nil, "kind": nil, "metadata": nil}, ""},
		"MRB-14/a version":        {map[string]any{"apiVersion": int64(1)}, "apiVersion: must be a string, is "},
		"MRB-14/a kind":           {map[string]any{"kind": true}, "kind: must be a string, is "},
		"MRB-14/a name":           {map[string]any{"metadata": map[string]any{"name": int64(1)}}, "metadata.name: must be a string, is "},
		"MRB-14/metadata":         {map[string]any{"metadata": "x"}, "metadata: must be a mapping, is "},
		"MRB-14/a name, nothing":  {map[string]any{"metadata": map[string]any{"name": nil}}, ""},
		"MRB-14/a template label": {map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": true}}}}}, "spec.template.metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkMetadata(tc.object)
			if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %v, want %s…", err, tc.want)
			}
		})
	}
}

// The bounds of what is read are exact.
func TestDecode_BoundsAreExact(t *testing.T) {
	for left, bad := range map[int]bool{6: false, 5: false, 4: true, 0: true} {
		rest := left
		if _, err := io.ReadAll(&countingReader{strings.NewReader("12345"), &rest}); errors.Is(err, errPlainBytes) != bad {
			t.Errorf("five bytes where %d are left: got %v", left, err)
		}
	}
	for levels, bad := range map[int]bool{3: false, 2: true, 1: true} {
		for kind, value := range map[string]any{"mappings": map[string]any{"a": map[string]any{"b": 1}}, "lists": []any{[]any{1}}} {
			expect.Equal(t, errors.Is(checkDepth(value, levels), errTooDeep), bad,
				"%s of three levels where %d may be", kind, levels)
		}
	}
}
