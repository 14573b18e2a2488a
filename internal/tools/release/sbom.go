package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// The parts of SPDX 2.3 that a list of Go modules needs.
type (
	spdxDocument struct {
		SPDXVersion       string             `json:"spdxVersion"`
		DataLicense       string             `json:"dataLicense"`
		SPDXID            string             `json:"SPDXID"`
		Name              string             `json:"name"`
		DocumentNamespace string             `json:"documentNamespace"`
		CreationInfo      spdxCreation       `json:"creationInfo"`
		Packages          []spdxPackage      `json:"packages"`
		Relationships     []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		SPDXID           string         `json:"SPDXID"`
		Name             string         `json:"name"`
		VersionInfo      string         `json:"versionInfo"`
		DownloadLocation string         `json:"downloadLocation"`
		FilesAnalyzed    bool           `json:"filesAnalyzed"`
		LicenseConcluded string         `json:"licenseConcluded"`
		LicenseDeclared  string         `json:"licenseDeclared"`
		CopyrightText    string         `json:"copyrightText"`
		Comment          string         `json:"comment,omitempty"`
		Checksums        []spdxChecksum `json:"checksums,omitempty"`
		ExternalRefs     []spdxRef      `json:"externalRefs,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxRef struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

const (
	documentID   = "SPDXRef-DOCUMENT"
	executableID = "SPDXRef-Executable"
	unasserted   = "NOASSERTION"
	// rootsModule has the certificates of public authorities.
	rootsModule = "golang.org/x/crypto/x509roots/fallback"
)

var notInIDs = regexp.MustCompile(`[^A-Za-z0-9.]+`)

// sbom lists what an executable was linked from, as the linker wrote it down, and the certificates beside it.
func (o *options) sbom(binary, executable, architecture string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	name := executable + "-linux-" + architecture
	d := spdxDocument{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: documentID, Name: name, DocumentNamespace: fmt.Sprintf("%s/spdx/%s/%s/%s", source, o.version, name, digest),
		CreationInfo: spdxCreation{o.time.Format(time.RFC3339), []string{"Tool: espalier-release"}},
		Packages: []spdxPackage{{
			SPDXID: executableID, Name: executable, VersionInfo: o.version, DownloadLocation: "git+" + source + "@" + o.commit,
			LicenseConcluded: license, LicenseDeclared: license, CopyrightText: unasserted, Checksums: []spdxChecksum{{"SHA256", digest}},
		}},
		Relationships: []spdxRelationship{{documentID, "DESCRIBES", executableID}},
	}
	d.add("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "", executableID, "STATIC_LINK")
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		d.add(module.Path, module.Version, module.Sum, executableID, "STATIC_LINK")
	}
	if own, ok := debug.ReadBuildInfo(); ok {
		for _, module := range own.Deps {
			if module.Path == rootsModule {
				d.add(module.Path, module.Version, module.Sum, documentID, "DESCRIBES")
			}
		}
	}
	return json.MarshalIndent(d, "", " ")
}

// add adds a module and what it is for what is there.
func (d *spdxDocument) add(path, version, sum, element, relation string) {
	p := spdxPackage{
		SPDXID: "SPDXRef-" + notInIDs.ReplaceAllString(path+"-"+version, "-"), Name: path, VersionInfo: version, DownloadLocation: unasserted,
		LicenseConcluded: unasserted, LicenseDeclared: unasserted, CopyrightText: unasserted,
		ExternalRefs: []spdxRef{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
	}
	if sum != "" {
		p.Comment = "go.sum: " + sum
	}
	d.Packages = append(d.Packages, p)
	d.Relationships = append(d.Relationships, spdxRelationship{element, relation, p.SPDXID})
}
