package relation

import (
	"testing"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/test/expect"
)

// TestJoins: each part of a rule of names counts, as the names of objects tell what they belong to (GE-1).
func TestJoins(t *testing.T) {
	at := func(namespace, name string) graph.Vertex { return graph.Vertex{Namespace: namespace, Name: name} }
	shoot, suffixed := at("garden-dev", "web"), byShootName([]string{".kubeconfig", ".ssh"})
	for name, c := range map[string]struct {
		join func(from, to graph.Vertex) bool
		from graph.Vertex
		want bool
	}{
		"the gardenlet of a Shoot":             {ofShootGardenlet, at("garden-dev", wellknown.SelfHostedShootPrefix+"web"), true},
		"that of another Shoot":                {ofShootGardenlet, at("garden-dev", wellknown.SelfHostedShootPrefix+"api"), false},
		"a gardenlet in another namespace":     {ofShootGardenlet, at("garden", wellknown.SelfHostedShootPrefix+"web"), false},
		"a gardenlet without the prefix":       {ofShootGardenlet, at("garden-dev", "web"), false},
		"a generated bucket":                   {generatedBucket, at(wellknown.Garden, wellknown.GeneratedBucketPrefix+"web"), true},
		"a generated bucket of another name":   {generatedBucket, at(wellknown.Garden, wellknown.GeneratedBucketPrefix+"api"), false},
		"a generated bucket elsewhere":         {generatedBucket, at("garden-dev", wellknown.GeneratedBucketPrefix+"web"), false},
		"an object named after a Shoot":        {suffixed, at("garden-dev", "web.kubeconfig"), true},
		"with the other suffix":                {suffixed, at("garden-dev", "web.ssh"), true},
		"with another suffix":                  {suffixed, at("garden-dev", "web.x"), false},
		"without a suffix":                     {suffixed, at("garden-dev", "web"), false},
		"named after a Shoot, elsewhere":       {suffixed, at("garden", "web.kubeconfig"), false},
		"named after another Shoot":            {suffixed, at("garden-dev", "api.kubeconfig"), false},
		"an extension of a Shoot":              {ofShootExtension, at("garden-dev", wellknown.ExtensionOfShootPrefix+"web--x"), true},
		"an extension of a Shoot with a dash":  {ofShootExtension, at("garden-dev", wellknown.ExtensionOfShootPrefix+"web-x"), false},
		"an extension of a Shoot, elsewhere":   {ofShootExtension, at("garden", wellknown.ExtensionOfShootPrefix+"web--x"), false},
		"a bootstrap token":                    {bootstrapToken, at(wellknown.KubeSystem, wellknown.BootstrapTokenSecret("garden-dev", "web")), true},
		"a bootstrap token of another one":     {bootstrapToken, at(wellknown.KubeSystem, wellknown.BootstrapTokenSecret("garden-dev", "api")), false},
		"a bootstrap token elsewhere":          {bootstrapToken, at("garden", wellknown.BootstrapTokenSecret("garden-dev", "web")), false},
		"the cluster's identity":               {clusterIdentity, at(wellknown.KubeSystem, wellknown.ClusterIdentity), true},
		"another one in kube-system":           {clusterIdentity, at(wellknown.KubeSystem, "x"), false},
		"the cluster's identity elsewhere":     {clusterIdentity, at("garden", wellknown.ClusterIdentity), false},
		"a lease of a seed":                    {seedLease, at(wellknown.SeedLease, "web"), true},
		"a lease of another seed":              {seedLease, at(wellknown.SeedLease, "api"), false},
		"a lease elsewhere":                    {seedLease, at("garden-dev", "web"), false},
		"a ServiceAccount to bootstrap":        {bootstrapAccount, at("garden-dev", wellknown.BootstrapServiceAccount+"web"), true},
		"a ServiceAccount of another name":     {bootstrapAccount, at("garden-dev", wellknown.BootstrapServiceAccount+"api"), false},
		"a ServiceAccount in another place":    {bootstrapAccount, at("garden", wellknown.BootstrapServiceAccount+"web"), false},
		"a gardenlet of a seed by this name":   {ofSeedGardenlet, at("garden", "web"), true},
		"a gardenlet of a seed by another":     {ofSeedGardenlet, at("garden", "api"), false},
		"the namespace that an object lies in": {namespaceOf, at("", "garden-dev"), true},
		"another namespace":                    {namespaceOf, at("", "garden"), false},
	} {
		expect.Equal(t, c.join(c.from, shoot), c.want, "GE-1: %s", name)
	}
	for kind, want := range map[graph.Kind]bool{Seed: true, Namespace: true, Project: true, CloudProfile: true, Shoot: false, Secret: false, Lease: false} {
		expect.Equal(t, ClusterScoped(kind), want, "GE-1: objects of %s have no namespace", Schema.Names[kind])
	}
}
