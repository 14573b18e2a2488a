package restriction

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/test/expect"
)

func init() {
	clients["shoot-gardenlet"] = authenticationv1.UserInfo{Username: "gardener.cloud:system:shoot:n:s", Groups: []string{"gardener.cloud:system:shoots"}}
	clients["gardenadm"] = authenticationv1.UserInfo{Username: "gardener.cloud:gardenadm:shoot:n:s", Groups: []string{"gardener.cloud:system:shoots"}}
	clients["shoot-extension"] = authenticationv1.UserInfo{Username: "system:serviceaccount:garden:extension-shoot--s--e", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:garden"}}
	apiGroups["managedseeds"], apiGroups["workloadidentities"] = "seedmanagement.gardener.cloud", "security.gardener.cloud"
}

func shootDecided(t *testing.T, g garden, question, object string) string {
	t.Helper()
	reader := &counting{garden: g}
	h := SelfHosted{&Handler{Reader: reader, Graph: graphOf(t, g), Shoots: shootsOf(t, g), Clock: clocktesting.NewFakePassiveClock(now), Log: logr.Discard()}}
	response := respond(h.Decide, ask(t, question, object))
	expect.True(t, len(reader.read) <= 1, "%s took reads of %q", question, reader.read)
	if response.Allowed {
		neverAllowedUnread(t, reader.read, g, question, object, func(g garden) *Handler {
			return &Handler{Reader: g, Graph: h.Graph, Shoots: h.Shoots, Clock: h.Clock, Log: h.Log}
		}, func(h *Handler) decide { return SelfHosted{h}.Decide })
		return "allowed"
	}
	return fmt.Sprintf("%d %s", response.Result.Code, response.Result.Message)
}

func TestShootRestriction_DecidesByResource(t *testing.T) {
	const foreign = "403 object does not belong to shoot n/s"
	own, other := "{spec: {shootRef: {namespace: 'n', name: s}}}", "{spec: {shootRef: {namespace: 'n', name: t}}}"
	entry := "{spec: {bucketName: b, shootRef: {namespace: 'n', name: s}}}"
	const ofAccount = `403 clients of seeds and shoots may not create Secrets of type "kubernetes.io/service-account-token"`
	const tokenSecret = "shoot-gardenlet CREATE secrets kube-system/bootstrap-token-abcdef"
	for name, c := range map[string]struct {
		garden           garden
		question, object string
		want             string
	}{
		"no client of a shoot":               {nil, "other CREATE secrets n/x", "{}", "allowed"},
		"another resource":                   {nil, "shoot-gardenlet CREATE bastions n/x", "{}", `400 unexpected resource: "bastions.operations.gardener.cloud"`},
		"another operation":                  {nil, "shoot-gardenlet UPDATE secrets n/x", "{}", `400 unexpected operation: "UPDATE"`},
		"undecodable":                        {nil, "shoot-gardenlet CREATE backupbuckets x", "{]", "400 couldn't get version/kind; json parse error: invalid character ']' looking for beginning of object key string"},
		"backupbuckets, no reference":        {nil, "shoot-gardenlet CREATE backupbuckets x", "{}", foreign},
		"backupbuckets, another":             {nil, "shoot-gardenlet CREATE backupbuckets x", other, foreign},
		"backupbuckets, own":                 {nil, "shoot-gardenlet CREATE backupbuckets x", own, "allowed"},
		"backupentries, no bucket":           {nil, "shoot-gardenlet CREATE backupentries n/x", entry, `403 backupbuckets.core.gardener.cloud "b" not found`},
		"backupentries, unreadable bucket":   {garden{"backupbuckets b": "error"}, "shoot-gardenlet CREATE backupentries n/x", entry, "500 fake-err"},
		"backupentries, another's bucket":    {garden{"backupbuckets b": other}, "shoot-gardenlet CREATE backupentries n/x", entry, foreign},
		"backupentries, own":                 {garden{"backupbuckets b": own}, "shoot-gardenlet CREATE backupentries n/x", entry, "allowed"},
		"csr, extension":                     {nil, "shoot-extension CREATE certificatesigningrequests x", "{}", "403 only gardenlet clients may create CertificateSigningRequests"},
		"csr, of a seed":                     {nil, "shoot-gardenlet CREATE certificatesigningrequests x", csr("seed", "client auth"), "403 can only create CSRs for shoot clusters: subject's organization is not set to [gardener.cloud:system:shoots]"},
		"configmaps, own":                    {nil, "shoot-gardenlet CREATE configmaps n/s.ca-kubelet", "{}", "allowed"},
		"configmaps, another":                {nil, "shoot-gardenlet CREATE configmaps n/t.ca-kubelet", "{}", foreign},
		"configmaps, another namespace":      {nil, "shoot-gardenlet CREATE configmaps m/s.ca-kubelet", "{}", foreign},
		"internalsecrets, own":               {nil, "shoot-gardenlet CREATE internalsecrets n/s.ca-client", "{}", "allowed"},
		"gardenlets, prefix":                 {nil, "shoot-gardenlet CREATE gardenlets n/s", "{}", `400 the resource for self-hosted shoots must be prefixed with "self-hosted-shoot-"`},
		"gardenlets, own":                    {nil, "shoot-gardenlet CREATE gardenlets n/self-hosted-shoot-s", "{}", "allowed"},
		"leases, own":                        {nil, "shoot-gardenlet CREATE leases n/self-hosted-shoot-s", "{}", "allowed"},
		"leases, another":                    {nil, "shoot-gardenlet CREATE leases n/self-hosted-shoot-t", "{}", foreign},
		"leases of extensions, namespace":    {nil, "shoot-extension CREATE leases n/s--x", "{}", `403 extension client can only create leases in the namespace for shoot "garden/s"`},
		"leases of extensions, name":         {nil, "shoot-extension CREATE leases garden/x", "{}", `403 extension client can only create leases with the shoot name "s" as prefix`},
		"leases of extensions, own":          {nil, "shoot-extension CREATE leases garden/s--x", "{}", "allowed"},
		"managedseeds, none":                 {nil, "shoot-gardenlet UPDATE managedseeds n/m", "{}", `403 managedseeds.seedmanagement.gardener.cloud "m" not found`},
		"managedseeds, another":              {garden{"managedseeds n/m": "{spec: {shoot: {name: t}}}"}, "shoot-gardenlet UPDATE managedseeds n/m", "{}", foreign},
		"managedseeds, own":                  {garden{"managedseeds n/m": "{spec: {shoot: {name: s}}}"}, "shoot-gardenlet UPDATE managedseeds n/m", "{}", "allowed"},
		"secrets, unrelated":                 {nil, "shoot-gardenlet CREATE secrets n/x", "{}", foreign},
		"secrets, own":                       {nil, "shoot-gardenlet CREATE secrets n/s.ssh-keypair", "{}", "allowed"},
		"secrets, bucket without reference":  {garden{"backupbuckets b": "{}"}, "shoot-gardenlet CREATE secrets garden/generated-bucket-b", "{}", `403 .spec.shootRef must be set in the BackupBucket resource "b" belonging to this Secret`},
		"secrets, own bucket":                {garden{"backupbuckets b": own}, "shoot-gardenlet CREATE secrets garden/generated-bucket-b", "{}", "allowed"},
		"secrets, token, type":               {nil, tokenSecret, "{type: Opaque}", `422 unexpected secret type: "Opaque"`},
		"secrets, token, own gardenlet":      {nil, tokenSecret, text(bootstrapToken("Gardenlet", "n/self-hosted-shoot-s")), "allowed"},
		"secrets, token, another":            {nil, tokenSecret, text(bootstrapToken("Gardenlet", "n/self-hosted-shoot-t")), foreign},
		"secrets, token, own ManagedSeed":    {garden{"managedseeds n/m": "{spec: {shoot: {name: s}}}"}, tokenSecret, text(bootstrapToken("ManagedSeed", "n/m")), "allowed"},
		"secrets, token, a seed's Gardenlet": {nil, tokenSecret, text(bootstrapToken("Gardenlet", "n/s")), foreign},
		"secrets, token, extension":          {nil, "shoot-extension CREATE secrets kube-system/bootstrap-token-abcdef", text(bootstrapToken("Gardenlet", "garden/self-hosted-shoot-s")), "403 extension client may not create bootstrap tokens"},
		"secrets, token, extension, managed": {garden{"managedseeds garden/m": "{spec: {shoot: {name: s}}}"}, "shoot-extension CREATE secrets kube-system/bootstrap-token-abcdef", text(bootstrapToken("ManagedSeed", "garden/m")), "403 extension client may not create bootstrap tokens"},
		"RES-34/own name, account's token":   {nil, "shoot-gardenlet CREATE secrets n/s.ssh-keypair", "{type: kubernetes.io/service-account-token}", ofAccount},
		"RES-34/extension, account's token":  {nil, "shoot-extension CREATE secrets garden/s.ssh-keypair", "{type: kubernetes.io/service-account-token}", ofAccount},
		"RES-34/own bucket, account's token": {garden{"backupbuckets b": own}, "shoot-gardenlet CREATE secrets garden/generated-bucket-b", "{type: kubernetes.io/service-account-token}", ofAccount},
		"RES-34/gardenadm, account's token":  {nil, "gardenadm CREATE secrets n/anything", "{type: kubernetes.io/service-account-token}", ofAccount},
		"serviceaccounts, extension":         {nil, "shoot-extension CREATE serviceaccounts garden/extension-shoot--s--x", "{}", "403 extension client may not create ServiceAccounts"},
		"serviceaccounts, own":               {nil, "shoot-gardenlet CREATE serviceaccounts n/extension-shoot--s--x", "{}", "allowed"},
		"serviceaccounts, another":           {nil, "shoot-gardenlet CREATE serviceaccounts n/extension-shoot--t--x", "{}", foreign},
		"shootstates, own":                   {nil, "shoot-gardenlet CREATE shootstates n/s", "{}", "allowed"},
		"shootstates, another":               {nil, "shoot-gardenlet CREATE shootstates n/t", "{}", foreign},
		"shoots, gardenlet":                  {nil, "shoot-gardenlet CREATE shoots n/s", "{}", `400 unexpected operation: "CREATE"`},
		"workload identities, extension":     {nil, "shoot-extension CREATE workloadidentities garden/x", "{}", `400 unexpected resource: "workloadidentities.security.gardener.cloud"`},
		"secrets, own bucket, elsewhere":     {garden{"backupbuckets b": own}, "shoot-gardenlet CREATE secrets n/generated-bucket-b", "{}", foreign},
		"gardenadm, own shoot":               {nil, "gardenadm CREATE shoots n/s", "{}", "allowed"},
		"gardenadm, another shoot":           {nil, "gardenadm CREATE shoots n/t", "{}", foreign},
		"gardenadm, project":                 {nil, "gardenadm CREATE projects p", "{spec: {namespace: 'n'}}", "allowed"},
		"gardenadm, another project":         {nil, "gardenadm CREATE projects p", "{spec: {namespace: m}}", foreign},
		"gardenadm, secret":                  {nil, "gardenadm CREATE secrets n/anything", "{}", "allowed"},
		"gardenadm, secret elsewhere":        {nil, "gardenadm CREATE secrets m/anything", "{}", foreign},
		"gardenadm, workload identity":       {nil, "gardenadm CREATE workloadidentities n/x", "{}", "allowed"},
		"gardenadm, lease":                   {nil, "gardenadm CREATE leases n/self-hosted-shoot-s", "{}", `400 unexpected resource: "leases.coordination.k8s.io"`},
		"gardenadm, ManagedSeed":             {nil, "gardenadm UPDATE managedseeds n/m", "{}", `400 unexpected resource: "managedseeds.seedmanagement.gardener.cloud"`},
		"gardenadm, another operation":       {nil, "gardenadm UPDATE secrets n/x", "{}", `400 unexpected operation: "UPDATE"`},
	} {
		t.Run("8.3/"+name, func(t *testing.T) {
			expect.Equal(t, shootDecided(t, c.garden, c.question, c.object), c.want)
		})
	}
	got := shootDecided(t, nil, "shoot-gardenlet DELETE shootstates n/s", "null")
	expect.True(t, strings.HasPrefix(got, "400 unexpected operation"), "8.3: got %s", got)
}
