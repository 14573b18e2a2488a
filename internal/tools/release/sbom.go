package main

import (
	"bytes"
	"runtime/debug"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/rs/zerolog"
)

// rootsModule has the certificates of public authorities.
const rootsModule = "golang.org/x/crypto/x509roots/fallback"

// sbom lists the modules that the linker wrote into an executable, and the certificates next to it.
func (o *options) sbom(binary string) ([]byte, error) {
	generator, err := bin.NewGenerator(binary, bin.WithIncludeStdlib(true), bin.WithVersionOverride(o.version), bin.WithLogger(zerolog.Nop()))
	if err != nil {
		return nil, err
	}
	bom, err := generator.Generate()
	if err != nil {
		return nil, err
	}
	bom.Metadata.Timestamp = o.time.Format(time.RFC3339)
	if own, ok := debug.ReadBuildInfo(); ok {
		for _, module := range own.Deps {
			if module.Path == rootsModule {
				purl := "pkg:golang/" + module.Path + "@" + module.Version
				*bom.Components = append(*bom.Components, cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeData, Name: module.Path, Version: module.Version, PackageURL: purl})
			}
		}
	}
	var out bytes.Buffer
	err = cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}
