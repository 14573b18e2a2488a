package process

import (
	"encoding/json"
	"io"
	"testing"

	"k8s.io/component-base/version"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/expect"
)

// TestVersion: the verb prints what the flag prints, or all that is known of the build in a form for programs.
func TestVersion(t *testing.T) {
	for name, arguments := range map[string][]string{"CLI-2/flag": {"--version"}, "CLI-2/verb": {"version"}} {
		if code, out, errOut := run(t, executable(nil, nil, io.Discard), arguments...); code != 0 || out != "thing "+version.Get().GitVersion+"\n" || errOut != "" {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", name, code, out, errOut)
		}
	}
	want := build{"thing", version.Get()}
	for name, decode := range map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(content []byte, into any) error { return yaml.UnmarshalStrict(content, into) },
	} {
		var got build
		code, out, errOut := run(t, executable(nil, nil, io.Discard), "version", "-o", name)
		if err := decode([]byte(out), &got); code != 0 || err != nil || errOut != "" {
			t.Fatalf("CLI-2/%s: exit code %d, %v, stdout %q, stderr %q", name, code, err, out, errOut)
		}
		expect.DeepEqual(t, got, want, "CLI-2/%s", name)
		expect.Equal(t, json.Valid([]byte(out)), (name == "json"), "CLI-2/%s: got %s", name, out)
	}
	if code, out, errOut := run(t, executable(nil, nil, io.Discard), "version", "-o", "xml"); code != 1 || out != "" || errOut == "" {
		t.Errorf("another form: exit code %d, stdout %q, stderr %q", code, out, errOut)
	}
}
