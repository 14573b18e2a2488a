package objects

import (
	"encoding/binary"
	"hash/maphash"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// seed differs between processes, because digests never leave the process.
var seed = maphash.MakeSeed()

// MetadataDigest returns a digest of the metadata that decides about drift if the generation covers the rest of the
// object: generation, labels, annotations and owners with their flags. It is never zero.
func MetadataDigest(meta metav1.Object) uint64 {
	sum := uint64(meta.GetGeneration()) * 0x9e3779b97f4a7c15
	for key, value := range meta.GetLabels() {
		sum += pair("l", key, value)
	}
	for key, value := range meta.GetAnnotations() {
		sum += pair("a", key, value)
	}
	for _, owner := range meta.GetOwnerReferences() {
		sum += pair("o", string(owner.UID),
			owner.APIVersion+owner.Kind+owner.Name+flag(owner.Controller)+flag(owner.BlockOwnerDeletion))
	}
	return sum | 1
}

// ContentDigest returns a digest of the object without its status and the counters of the API server. It is never
// zero.
func ContentDigest(object map[string]any) uint64 {
	var sum uint64
	for key, value := range object {
		switch key {
		case "status":
		case "metadata":
			meta, _ := value.(map[string]any)
			for field, v := range meta {
				switch field {
				case "managedFields", "resourceVersion", "generation":
				default:
					sum += mix(text("m"+field), valueDigest(v))
				}
			}
		default:
			sum += mix(text(key), valueDigest(value))
		}
	}
	return sum | 1
}

// flag formats an optional boolean.
func flag(b *bool) string {
	switch {
	case b == nil:
		return "-"
	case *b:
		return "t"
	}
	return "f"
}

func pair(kind, key, value string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = h.WriteString(kind)
	_, _ = h.WriteString(key)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(value)
	return h.Sum64()
}

func text(s string) uint64 { return maphash.String(seed, s) | 1 }

// valueDigest adds up the entries of mappings, so that their order does not matter, and chains the items of lists.
func valueDigest(value any) uint64 {
	switch value := value.(type) {
	case map[string]any:
		sum := uint64(3)
		for key, v := range value {
			sum += mix(text(key), valueDigest(v))
		}
		return sum
	case []any:
		sum := uint64(5)
		for _, v := range value {
			sum = mix(sum, valueDigest(v))
		}
		return sum
	case string:
		return maphash.String(seed, value)
	case int64:
		return mix(7, uint64(value))
	case float64:
		return mix(11, math.Float64bits(value))
	case bool:
		if value {
			return 13
		}
		return 17
	}
	return 19
}

func mix(a, b uint64) uint64 {
	var buffer [16]byte
	binary.LittleEndian.PutUint64(buffer[:8], a)
	binary.LittleEndian.PutUint64(buffer[8:], b)
	return maphash.Bytes(seed, buffer[:])
}
