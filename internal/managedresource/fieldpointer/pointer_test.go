package fieldpointer

import (
	"strings"
	"testing"
)

func TestParseList(t *testing.T) {
	for name, tc := range map[string]struct{ text, want, err string }{
		"MRF-2/nothing":                     {text: "", want: ""},
		"MRF-2/commas and spaces":           {text: " /a,/b /c\n/d ", want: "/a /b /c /d"},
		"MRF-2/escapes":                     {text: "/metadata/annotations/x~1y~0z", want: "/metadata/annotations/x~1y~0z"},
		"MRF-2/every and by key":            {text: "/c/*/image,/c/[name=a~1b]/image", want: "/c/*/image /c/[name=a~1b]/image"},
		"MRF-3/no slash":                    {text: "/a,spec/replicas", err: `pointer "spec/replicas" must begin with a slash`},
		"MRF-3/the whole object":            {text: "/", err: `pointer "/": has an empty step`},
		"MRF-3/an empty step":               {text: "/a//b", err: `pointer "/a//b": has an empty step`},
		"MRF-3/a lonely tilde":              {text: "/a~b", err: `step "a~b" has a ~ that is followed by neither 0 nor 1`},
		"MRF-3/a tilde at the end":          {text: "/[a=b~]", err: `step "b~" has a ~ that is followed by neither 0 nor 1`},
		"MRF-3/an open bracket":             {text: "/a/[name=b", err: `step "[name=b" must be [key=value]`},
		"MRF-3/a closing bracket":           {text: "/a/b]", err: `step "b]" must be [key=value]`},
		"MRF-3/brackets without a key":      {text: "/a/[=b]", err: `step "[=b]" must be [key=value]`},
		"MRF-3/brackets without a value":    {text: "/a/[b]", err: `step "[b]" must be [key=value]`},
		"MRF-2/as many pointers as fit":     {text: strings.Repeat("/a ", maxPointers), want: strings.TrimSpace(strings.Repeat("/a ", maxPointers))},
		"MRF-2/as long as one may be":       {text: "/" + strings.Repeat("a", maxLength-1), want: "/" + strings.Repeat("a", maxLength-1)},
		"MRF-2/as many steps as may be":     {text: strings.Repeat("/a", maxSteps), want: strings.Repeat("/a", maxSteps)},
		"MRF-3/the beginning of a long one": {text: "/" + strings.Repeat("a", maxLength), err: `pointer "/` + strings.Repeat("a", 31) + `"… has`},
		"MRF-3/more pointers than fit":      {text: strings.Repeat("/a ", maxPointers+1), err: "has 65 pointers, which is more than 64"},
		"MRF-3/a pointer that is too long":  {text: "/" + strings.Repeat("a", maxLength), err: "has 513 bytes, which is more than 512"},
		"MRF-3/too many steps":              {text: strings.Repeat("/a", maxSteps+1), err: "has 33 steps, which is more than 32"},
	} {
		t.Run(name, func(t *testing.T) {
			pointers, err := ParseList(tc.text)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error: got %v, want %q", err, tc.err)
			}
			texts := make([]string, len(pointers))
			for i, pointer := range pointers {
				texts[i] = pointer.String()
			}
			if got := strings.Join(texts, " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct{ pointer, group, kind, err string }{
		"MRF-1/a field":                       {pointer: "/spec/replicas"},
		"MRF-1/a label":                       {pointer: "/metadata/labels/app"},
		"MRF-1/an annotation":                 {pointer: "/metadata/annotations/example.org~1x"},
		"MRF-1/data of a Secret":              {pointer: "/data/x", kind: "Secret"},
		"MRF-1/stringData of another kind":    {pointer: "/stringData", group: "example.org", kind: "Secret"},
		"MRF-3/every field":                   {pointer: "/*/x", err: "must name a field at the top"},
		"MRF-3/a list at the top":             {pointer: "/[a=b]", err: "must name a field at the top"},
		"MRF-3/the version":                   {pointer: "/apiVersion", err: "says which object it is"},
		"MRF-3/the kind":                      {pointer: "/kind", err: "says which object it is"},
		"MRF-3/all metadata":                  {pointer: "/metadata", err: "must name one label or one annotation"},
		"MRF-3/all metadata, by every":        {pointer: "/metadata/*", err: "must name one label or one annotation"},
		"MRF-3/the name":                      {pointer: "/metadata/name", err: "must name one label or one annotation"},
		"MRF-3/owners":                        {pointer: "/metadata/ownerReferences", err: "must name one label or one annotation"},
		"MRF-3/finalizers":                    {pointer: "/metadata/finalizers", err: "must name one label or one annotation"},
		"MRF-3/all labels":                    {pointer: "/metadata/labels", err: "must name one label or one annotation"},
		"MRF-3/every annotation":              {pointer: "/metadata/annotations/*", err: "must name one label or one annotation"},
		"MRF-3/below an annotation":           {pointer: "/metadata/annotations/a/b", err: "must name one label or one annotation"},
		"MRF-3/the origin":                    {pointer: "/metadata/annotations/resources.gardener.cloud~1origin", err: "by which ManagedResources know their objects"},
		"MRF-3/the managed-by label":          {pointer: "/metadata/labels/resources.gardener.cloud~1managed-by", err: "by which ManagedResources know their objects"},
		"MRF-3/a reference to what is in use": {pointer: "/metadata/annotations/reference.resources.gardener.cloud~1secret-1", err: "by which ManagedResources know their objects"},
		"MRF-3/what is only written":          {pointer: "/stringData/x", kind: "Secret", err: "the value is at /data"},
	} {
		t.Run(name, func(t *testing.T) {
			pointers, err := ParseList(tc.pointer)
			if err != nil {
				t.Fatal(err)
			}
			err = Check(pointers, tc.group, tc.kind)
			if (err == nil) != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), tc.pointer)) {
				t.Errorf("got %v, want %q with the pointer", err, tc.err)
			}
		})
	}
}

func TestIndex(t *testing.T) {
	for name, want := range map[string]bool{"0": true, "1": true, "12": true, "01": false, "+1": false, "-1": false, "x": false, "": false} {
		if i, is := (step{name: name}).index(); is != want {
			t.Errorf("MRF-2: %q is the index %d: %v", name, i, is)
		}
	}
}
