package partialmeta

import "github.com/espalier-project/espalier/internal/externalapi/protodecode"

// The messages in Protocol Buffers, as Kubernetes defines them.
var (
	// ObjectMessage is the message of Object.
	ObjectMessage = protodecode.Message{
		"name": {Number: 1}, "namespace": {Number: 3}, "uid": {Number: 5}, "resourceVersion": {Number: 6}, "deletionTimestamp": {Number: 9},
		"labels": {Number: 11}, "annotations": {Number: 12}, "ownerReferences": {Number: 13},
	}
	// ReferenceMessage is the ObjectReference of core/v1.
	ReferenceMessage = protodecode.Message{"kind": {Number: 1}, "namespace": {Number: 2}, "name": {Number: 3}, "apiVersion": {Number: 5}}
	// CrossVersionMessage is the CrossVersionObjectReference of autoscaling/v1, which has no namespace.
	CrossVersionMessage = protodecode.Message{"kind": {Number: 1}, "name": {Number: 2}, "apiVersion": {Number: 3}, "namespace": {}}
	// NameMessage is the LocalObjectReference of core/v1.
	NameMessage = protodecode.Message{"name": {Number: 1}}
	// SecretMessage is the SecretReference of core/v1.
	SecretMessage = protodecode.Message{"name": {Number: 1}, "namespace": {Number: 2}}
	// NamedResourceMessage is the NamedResourceReference of Gardener.
	NamedResourceMessage = protodecode.Message{"resourceRef": {Number: 2, Of: CrossVersionMessage}}
)
