package dropin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// imageSource is an entry of an image vector (DPL-111).
type imageSource struct {
	Name           string   `json:"name"`
	RuntimeVersion string   `json:"runtimeVersion,omitempty"`
	TargetVersion  string   `json:"targetVersion,omitempty"`
	Architectures  []string `json:"architectures,omitempty"`
	Ref            string   `json:"ref,omitempty"`
	Repository     string   `json:"repository,omitempty"`
	Tag            string   `json:"tag,omitempty"`
	Version        string   `json:"version,omitempty"`
}

// imageVector is an image vector, or what overwrites one.
type imageVector struct {
	Images   []imageSource `json:"images"`
	CABundle *struct {
		Inline string `json:"inline"`
	} `json:"caBundle,omitempty"`
}

// deployersVector are the entries of the deployers for what we replace: they have no tag (DPL-112).
var deployersVector = imageVector{Images: []imageSource{
	{Name: "gardener-resource-manager", Repository: "registry.example.org/gardener/resource-manager"},
	{Name: "gardener-admission-controller", Repository: "registry.example.org/gardener/admission-controller"},
}}

// parseImageVector reads what overwrites an image vector; no field may be unknown.
func parseImageVector(content string) (*imageVector, error) {
	vector := &imageVector{}
	if err := yaml.UnmarshalStrict([]byte(content), vector); err != nil {
		return nil, err
	}
	var faults []error
	for i, image := range vector.Images {
		switch {
		case image.Name == "":
			faults = append(faults, fmt.Errorf("images[%d] has no name", i))
		case image.Ref == "" && image.Repository == "":
			faults = append(faults, fmt.Errorf("images[%d] has neither ref nor repository", i))
		case image.Ref != "" && (image.Repository != "" || image.Tag != ""):
			faults = append(faults, fmt.Errorf("images[%d] has a ref, and a repository or a tag", i))
		}
	}
	return vector, errors.Join(faults...)
}

// find returns the image that a deployer of a version takes, with the entries of another vector over those of v (DPL-111, DPL-112).
func (v imageVector) find(over *imageVector, name, version string) string {
	// An entry for some versions or architectures only stands beside the other one, and does not replace it.
	named := func(s imageSource) bool {
		return s.Name == name && s.RuntimeVersion == "" && s.TargetVersion == "" && len(s.Architectures) == 0
	}
	image := v.Images[slices.IndexFunc(v.Images, named)]
	if i := slices.IndexFunc(over.Images, named); i >= 0 {
		o := over.Images[i]
		switch {
		case o.Ref != "":
			image.Ref = o.Ref
		default:
			image.Ref, image.Repository = "", o.Repository
			if o.Tag != "" {
				image.Tag = o.Tag
			}
		}
	}
	if image.Ref != "" {
		return image.Ref
	}
	if image.Tag == "" {
		image.Tag = version
	}
	if strings.HasPrefix(image.Tag, "sha256:") {
		return image.Repository + "@" + image.Tag
	}
	return image.Repository + ":" + image.Tag
}

var yamlBlock = regexp.MustCompile("(?ms)^ *```yaml\n(.*?)^ *```")

// documented are the image vectors on the page about migration: as files, and as the text of fields that hold one.
func documented(t *testing.T) []string {
	t.Helper()
	root, err := harness.Root()
	must.Succeed(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "operations", "migrate.md"))
	must.Succeed(t, err)
	var found []string
	for _, match := range yamlBlock.FindAllStringSubmatch(string(page), -1) {
		content := object{}
		must.Succeed(t, yaml.Unmarshal([]byte(match[1]), &content))
		switch text, isText := lookup(content, "imageVectorOverwrite").(string); {
		case content["images"] != nil:
			found = append(found, match[1])
		case isText:
			found = append(found, text)
		}
	}
	return found
}

// lookup returns the value of a key, wherever it is.
func lookup(section object, key string) any {
	if value, found := section[key]; found {
		return value
	}
	for _, value := range section {
		if below, isSection := value.(object); isSection {
			if value := lookup(below, key); value != nil {
				return value
			}
		}
	}
	return nil
}

// overwritten is the image that deployers take for a name with the first vector on the page about migration.
func overwritten(t *testing.T, name string) string {
	t.Helper()
	over, err := parseImageVector(documented(t)[0])
	must.Succeed(t, err)
	return deployersVector.find(over, name, "v1.150.0-dev")
}

// TestImageVectorOverwrite: what the page about migration shows is an image vector as deployers read it (DPL-111), for the names by which they
// look for images (DPL-110), and makes them deploy images of ours in a version of ours (DPL-112).
func TestImageVectorOverwrite(t *testing.T) {
	vectors := documented(t)
	must.True(t, len(vectors) >= 3,
		"DPL-111: the page shows %d image vectors, want those of the file, the chart and the Gardenlet", len(vectors))
	names := map[string]bool{}
	for _, content := range vectors {
		over, err := parseImageVector(content)
		if err != nil {
			t.Errorf("DPL-111: %v in:\n%s", err, content)
			continue
		}
		for _, image := range over.Images {
			names[image.Name] = true
			got := deployersVector.find(over, image.Name, "v1.150.0-dev")
			if want := strings.TrimPrefix(image.Name, "gardener-"); executableOf(got) != want || strings.Contains(got, "v1.150.0-dev") || !strings.Contains(got, "espalier") {
				t.Errorf("DPL-110, DPL-112: %s becomes %s", image.Name, got)
			}
		}
	}
	for _, image := range deployersVector.Images {
		expect.True(t, names[image.Name], "DPL-110: the page does not overwrite %s", image.Name)
	}
}

// TestImageVectorMerge: DPL-111, DPL-112.
func TestImageVectorMerge(t *testing.T) {
	for name, tc := range map[string]struct{ over, want, fault string }{
		"DPL-111/nothing overwritten":      {"images: []\n", "registry.example.org/gardener/resource-manager:v1.150.0-dev", ""},
		"DPL-111/ref":                      {"images: [{name: gardener-resource-manager, ref: r/espalier:v1}]\n", "r/espalier:v1", ""},
		"DPL-111/repository and digest":    {"images: [{name: gardener-resource-manager, repository: r/espalier, tag: 'sha256:ab'}]\n", "r/espalier@sha256:ab", ""},
		"DPL-112/repository without a tag": {"images: [{name: gardener-resource-manager, repository: r/espalier}]\n", "r/espalier:v1.150.0-dev", ""},
		"DPL-110/another name":             {"images: [{name: resource-manager, ref: r/espalier:v1}]\n", "registry.example.org/gardener/resource-manager:v1.150.0-dev", ""},
		"DPL-111/for some architectures":   {"images: [{name: gardener-resource-manager, ref: r/espalier:v1, architectures: [amd64, arm64]}]\n", "registry.example.org/gardener/resource-manager:v1.150.0-dev", ""},
		"DPL-111/ref and tag":              {"images: [{name: gardener-resource-manager, ref: r/espalier:v1, tag: v1}]\n", "", "images[0] has a ref, and a repository or a tag"},
		"DPL-111/neither":                  {"images: [{name: gardener-resource-manager, tag: v1}]\n", "", "images[0] has neither ref nor repository"},
	} {
		t.Run(name, func(t *testing.T) {
			over, err := parseImageVector(tc.over)
			if tc.fault != "" {
				if err == nil || err.Error() != tc.fault {
					t.Errorf("DPL-111: error %v, want %s", err, tc.fault)
				}
				return
			}
			must.Succeed(t, err)
			expect.Equal(t, deployersVector.find(over, "gardener-resource-manager", "v1.150.0-dev"), tc.want, "DPL-112")
		})
	}
}
