package meta

import "github.com/espalier-project/espalier/internal/externalapi/wire"

// Messages in Protocol Buffers, as Kubernetes has them.
var (
	// ObjectMessage is that of Object.
	ObjectMessage = wire.Message{
		"name": {Number: 1}, "namespace": {Number: 3}, "uid": {Number: 5}, "resourceVersion": {Number: 6}, "deletionTimestamp": {Number: 9},
		"labels": {Number: 11}, "annotations": {Number: 12}, "ownerReferences": {Number: 13},
	}
	// ReferenceMessage is the ObjectReference of core/v1.
	ReferenceMessage = wire.Message{"kind": {Number: 1}, "namespace": {Number: 2}, "name": {Number: 3}, "apiVersion": {Number: 5}}
	// CrossVersionMessage is the CrossVersionObjectReference of autoscaling/v1, which has no namespace.
	CrossVersionMessage = wire.Message{"kind": {Number: 1}, "name": {Number: 2}, "apiVersion": {Number: 3}, "namespace": {}}
	// NameMessage is the LocalObjectReference of core/v1.
	NameMessage = wire.Message{"name": {Number: 1}}
	// SecretMessage is the SecretReference of core/v1.
	SecretMessage = wire.Message{"name": {Number: 1}, "namespace": {Number: 2}}
	// NamedResourceMessage is the NamedResourceReference of Gardener.
	NamedResourceMessage = wire.Message{"resourceRef": {Number: 2, Of: CrossVersionMessage}}
)
