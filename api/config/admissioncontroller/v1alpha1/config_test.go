package v1alpha1

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func parse(t *testing.T, text string) *AdmissionControllerConfiguration {
	t.Helper()
	c := &AdmissionControllerConfiguration{}
	must.Succeed(t, yaml.Unmarshal([]byte(text), c))
	SetDefaults(c)
	return c
}

func TestDefaults(t *testing.T) {
	c := parse(t, "{}")
	if c.Server.Webhooks.Port != 2721 || c.Server.HealthProbes.Port != 2722 || c.Server.Metrics.Port != 2723 || c.GardenClientConnection.QPS != 50 || c.GardenClientConnection.Burst != 100 ||
		c.LogLevel != "info" || c.LogFormat != "json" || c.Server.SeedAuthorizer.ReadScope != "All" || c.Server.SeedAuthorizer.WriteScope != "Referenced" ||
		c.Server.SeedAuthorizer.References != "Trusted" || c.Server.SeedAuthorizer.MaxStaleness.Duration != 10*time.Minute {
		t.Errorf("operations 1.10: got %+v", c)
	}
	expect.Succeed(t, Validate(c).ToAggregate(), "operations 1.10")
	c = parse(t, "server: {resourceAdmissionConfiguration: {unrestrictedSubjects: [{kind: User, name: u}]}}")
	expect.Equal(t, c.Server.ResourceAdmissionConfiguration.UnrestrictedSubjects[0].APIGroup, "rbac.authorization.k8s.io", "operations 1.10: got the apiGroup")
}

func TestValidate(t *testing.T) {
	const admission = "server.resourceAdmissionConfiguration."
	for name, c := range map[string]struct{ text, want string }{
		"ACC-3/a limit": {"server: {resourceAdmissionConfiguration: {operationMode: log, limits: [{apiGroups: ['*'], apiVersions: [v1], resources: [shoots], size: 1Mi, count: 0}], unrestrictedSubjects: [{kind: ServiceAccount, namespace: n, name: s}]}}", ""},
		"operations 1.10/neither size nor count": {"server: {resourceAdmissionConfiguration: {limits: [{apiGroups: [a], apiVersions: [v1], resources: [r]}]}}",
			admission + `limits[0]: Invalid value: "": at least one of size or count must be specified`},
		"1.10/empty lists":                             {"server: {resourceAdmissionConfiguration: {limits: [{size: 1}]}}", admission + "limits[0].versions: Invalid value: null: must at least have one element"},
		"1.10/empty elements":                          {"server: {resourceAdmissionConfiguration: {limits: [{apiGroups: [''], apiVersions: [''], resources: [a, ''], size: 1}]}}", admission + `limits[0].resources[1]: Invalid value: "": must not be empty`},
		"1.10/negative size":                           {"server: {resourceAdmissionConfiguration: {limits: [{apiGroups: [a], apiVersions: [v1], resources: [r], size: -1}]}}", admission + `limits[0].size: Invalid value: "-1": value must not be negative`},
		"1.10/negative count":                          {"server: {resourceAdmissionConfiguration: {limits: [{apiGroups: [a], apiVersions: [v1], resources: [r], count: -1}]}}", admission + `limits[0].count: Invalid value: -1: value must not be negative`},
		"operations 1.10/ServiceAccount with apiGroup": {"server: {resourceAdmissionConfiguration: {unrestrictedSubjects: [{kind: ServiceAccount, namespace: n, name: s, apiGroup: x}]}}", admission + `unrestrictedSubjects[0].apiGroup: Invalid value: "x": apiGroup must be empty`},
		"operations 1.10/Group with namespace":         {"server: {resourceAdmissionConfiguration: {unrestrictedSubjects: [{kind: Group, namespace: ns, name: s}]}}", admission + `unrestrictedSubjects[0].namespace: Invalid value: "ns": name must be empty`},
		"1.10/another kind":                            {"server: {resourceAdmissionConfiguration: {unrestrictedSubjects: [{kind: Foo, name: s}]}}", admission + `unrestrictedSubjects[0].kind: Unsupported value: "Foo": supported values: "User", "Group", "ServiceAccount"`},
		"operations 1.10/mode":                         {"server: {resourceAdmissionConfiguration: {operationMode: foo}}", admission + `mode: Unsupported value: "foo": supported values: "block", "log"`},
		"1.10/burst":                                   {"gardenClientConnection: {burst: -1}", "gardenClientConnection.burst: Invalid value: -1: must be non-negative"},
		"1.10/log":                                     {"logLevel: x", `logLevel: Unsupported value: "x"`},
		"OPB-4/ports":                                  {"server: {metrics: {port: 2721}}", "server.metrics.port: Invalid value: 2721"},
		"D-1/read scope":                               {"server: {seedAuthorizer: {readScope: Some}}", `server.seedAuthorizer.readScope: Unsupported value: "Some": supported values: "All", "Related"`},
		"references":                                   {"server: {seedAuthorizer: {references: Some}}", `server.seedAuthorizer.references: Unsupported value: "Some": supported values: "Trusted", "Checked"`},
		"references/Checked":                           {"server: {seedAuthorizer: {references: Checked}}", ""},
		"staleness/never":                              {"server: {seedAuthorizer: {maxStaleness: 0s}}", ""},
		"staleness/too short":                          {"server: {seedAuthorizer: {maxStaleness: 1m}}", `server.seedAuthorizer.maxStaleness: Invalid value: "1m0s": must be 0 or at least 5m0s`},
		"staleness/negative":                           {"server: {seedAuthorizer: {maxStaleness: -1s}}", `server.seedAuthorizer.maxStaleness: Invalid value: "-1s"`},
		"SHD-1/shadow":                                 {"server: {seedAuthorizer: {shadow: {readScope: Related, writeScope: Owned, references: Checked}}}", ""},
		"SHD-1/shadow of one of them":                  {"server: {seedAuthorizer: {shadow: {writeScope: Owned}}}", ""},
		"SHD-1/shadow of nothing":                      {"server: {seedAuthorizer: {shadow: {}}}", "server.seedAuthorizer.shadow: Required value: at least one of readScope, writeScope or references"},
		"SHD-1/read scope of the shadow":               {"server: {seedAuthorizer: {shadow: {readScope: Some}}}", `server.seedAuthorizer.shadow.readScope: Unsupported value: "Some": supported values: "All", "Related"`},
		"SHD-1/write scope of the shadow":              {"server: {seedAuthorizer: {shadow: {writeScope: All}}}", `server.seedAuthorizer.shadow.writeScope: Unsupported value: "All": supported values: "Referenced", "Owned"`},
		"SHD-1/references of the shadow":               {"server: {seedAuthorizer: {shadow: {references: Owned}}}", `server.seedAuthorizer.shadow.references: Unsupported value: "Owned": supported values: "Trusted", "Checked"`},
		"SHD-6/webhooks that only report":              {"server: {onlyReport: [seedrestriction, namespace_validator]}", ""},
		"SHD-6/an unknown webhook":                     {"server: {onlyReport: [seedrestriction, sync-provider-secret-labels]}", `server.onlyReport[1]: Unsupported value: "sync-provider-secret-labels"`},
		"SHD-6/a webhook twice":                        {"server: {onlyReport: [seedrestriction, seedrestriction]}", `server.onlyReport[1]: Duplicate value: "seedrestriction"`},
		"B-6/write scope":                              {"server: {seedAuthorizer: {writeScope: Some}}", `server.seedAuthorizer.writeScope: Unsupported value: "Some": supported values: "Referenced", "Owned"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := Validate(parse(t, c.text)).ToAggregate()
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
