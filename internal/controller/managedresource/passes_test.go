package managedresource

import (
	"testing"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

func TestDoubtsAboutSecrets(t *testing.T) {
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.UID, mr.Generation = "u", 1
	owner := ownerOf(mr)
	var p passes
	if !p.secretChanged(owner, "s", "1") {
		t.Error("MRT-4: nothing is known of this ManagedResource, so that it must be looked at")
	}
	p.secretsRead(mr)
	p.secretChanged(owner, "s", "1") // The event about what is being read.
	p.finished(mr, map[string]string{"s": "1"}, "checksum")
	if p.of(mr).secretsInDoubt {
		t.Error("MRT-4: the version that was read is no news")
	}
	if p.secretChanged(owner, "s", "1") || p.of(mr).secretsInDoubt {
		t.Error("MRT-4: neither is it later")
	}
	p.secretsRead(mr)
	p.secretChanged(owner, "s", "2")
	p.finished(mr, map[string]string{"s": "1"}, "checksum")
	if !p.of(mr).secretsInDoubt {
		t.Error("MRT-4: a newer version must be read")
	}
	p.secretsRead(mr)
	if p.of(mr).secretsInDoubt {
		t.Error("a doubt ends with reading")
	}
	if owners := p.allInDoubt(); len(owners) != 1 || !p.of(mr).secretsInDoubt {
		t.Error("after a gap every Secret is in doubt")
	}
	mr.UID = "another"
	if p.of(mr).complete {
		t.Error("another ManagedResource by the same name starts anew")
	}
}
