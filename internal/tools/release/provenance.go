package main

import (
	"encoding/json"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	statementType  = "https://in-toto.io/Statement/v1"
	provenanceType = "https://slsa.dev/provenance/v1"
	// statementMediaType is the media type of an in-toto statement: alone in a registry, and in an envelope.
	statementMediaType = types.MediaType("application/vnd.in-toto+json")
	// page describes how a release is built, and so the meaning of its parameters.
	page = source + "/blob/main/docs/internals/release.md"
)

// The parts of an in-toto statement with SLSA provenance that a build on one machine can vouch for.
type (
	statement struct {
		Type          string     `json:"_type"`
		Subject       []resource `json:"subject"`
		PredicateType string     `json:"predicateType"`
		Predicate     provenance `json:"predicate"`
	}
	resource struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest,omitempty"`
	}
	provenance struct {
		Definition definition `json:"buildDefinition"`
		Details    details    `json:"runDetails"`
	}
	definition struct {
		Type     string            `json:"buildType"`
		External map[string]string `json:"externalParameters"`
		Resolved []resource        `json:"resolvedDependencies"`
	}
	details struct {
		Builder struct {
			ID      string            `json:"id"`
			Version map[string]string `json:"version"`
		} `json:"builder"`
	}
)

// provenance returns the statement how the subjects were made: from which commit, with which parameters, by which Go.
// It has no time, so that a release is the same whenever it is built.
func (o *options) provenance(subjects []resource) ([]byte, error) {
	s := statement{Type: statementType, Subject: subjects, PredicateType: provenanceType}
	s.Predicate.Definition = definition{
		Type:     page + "#how-it-is-built",
		External: map[string]string{"version": o.version, "architectures": strings.Join(o.architectures, " "), "defaults": string(o.defaults)},
		Resolved: []resource{{URI: "git+" + source, Digest: map[string]string{"gitCommit": o.commit}}},
	}
	s.Predicate.Details.Builder.ID = page + "#who-builds-it"
	s.Predicate.Details.Builder.Version = map[string]string{"go": runtime.Version()}
	return json.Marshal(s)
}
