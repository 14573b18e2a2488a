package charts

import (
	"testing"

	"github.com/espalier-project/espalier/test/expect"
)

// TestMetadata: each chart says where it comes from and who maintains it, and all have one version, which is that of the image too.
func TestMetadata(t *testing.T) {
	first := load(t, charts(t)[0]).Metadata
	for _, name := range charts(t) {
		data := load(t, name).Metadata
		expect.Succeed(t, data.Validate(), "%s", name)
		expect.True(t, data.Name == name && data.Home != "" && len(data.Sources) != 0 && len(data.Maintainers) != 0,
			"%s: got %+v", name, data)
		if data.Version != first.Version || data.AppVersion != "v"+data.Version {
			t.Errorf("%s has version %s and appVersion %s, other charts have %s", name, data.Version, data.AppVersion, first.Version)
		}
		image := deployment(t, render(t, name, nil)).Spec.Template.Spec.Containers[0].Image
		expect.Equal(t, image, "espalier/"+name+":"+data.AppVersion, "%s: the image", name)
	}
}
