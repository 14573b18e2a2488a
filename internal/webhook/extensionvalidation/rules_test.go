package extensionvalidation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-project/espalier/test/expect"
)

// judged is a case: a spec, that of the object before if it is an update, and the errors.
type judged struct {
	now, old string
	want     []string
}

func check(t *testing.T, kind string, cases map[string]judged) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			old := ""
			if c.old != "" {
				old = object(kind, c.old)
			}
			got := causes(t, ask(t, kind, object(kind, c.now), old))
			expect.DeepEqual(t, got, c.want)
		})
	}
}

const subdomainText = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`

func TestDNSRecords(t *testing.T) {
	record := func(fields string) string { return `{type: p, secretRef: {name: s}, ` + fields + `}` }
	const twoParts = "should be a domain with at least two segments separated by dots"
	const ip = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
	check(t, "DNSRecord", map[string]judged{
		"A13.4/a name of one part":        {now: record(`name: test, recordType: A, values: [1.2.3.4]`), want: []string{`spec.name: Invalid value: "test": ` + twoParts}},
		"A13.4/a wildcard":                {now: record(`name: "*.test.example.com", recordType: A, values: [1.2.3.4]`)},
		"A13.4/only one prefix is taken":  {now: record(`name: "*.*.example.com", recordType: A, values: [1.2.3.4]`), want: []string{`spec.name: Invalid value: "*.example.com": ` + subdomainText}},
		"A13.4/an underscore for TXT":     {now: record(`name: _acme-challenge.test.example.com, recordType: TXT, values: [x, ""]`)},
		"A13.4/an underscore for A":       {now: record(`name: _acme-challenge.test.example.com, recordType: A, values: [1.2.3.4]`), want: []string{`spec.name: Invalid value: "_acme-challenge.test.example.com": ` + subdomainText}},
		"A13.4/no wildcard for TXT":       {now: record(`name: "*.example.com", recordType: TXT, values: [x]`), want: []string{`spec.name: Invalid value: "*.example.com": ` + subdomainText}},
		"A13.4/a dot at the end":          {now: record(`name: example.com., recordType: A, values: [1.2.3.4]`)},
		"A13.4/A with a name":             {now: record(`name: a.example.com, recordType: A, values: [example.com]`), want: []string{`spec.values[0]: Invalid value: "example.com": ` + ip}},
		"A13.4/CNAME with half a name":    {now: record(`name: a.example.com, recordType: CNAME, values: [example]`), want: []string{`spec.values[0]: Invalid value: "example": ` + twoParts}},
		"A13.4/CNAME with an empty name":  {now: record(`name: a.example.com, recordType: CNAME, values: [""]`), want: []string{`spec.values[0]: Required value`}},
		"A13.4/CNAME with two":            {now: record(`name: a.example.com, recordType: CNAME, values: [b.example.com, c.example.com]`), want: []string{`spec.values: Invalid value: ["b.example.com","c.example.com"]: CNAME records must have a single value`}},
		"A13.4/SOA":                       {now: record(`name: a.example.com, recordType: SOA, values: [x]`), want: []string{`spec.recordType: Unsupported value: "SOA": supported values: "A", "AAAA", "CNAME", "TXT"`}},
		"A13.4/a ttl below zero":          {now: record(`name: a.example.com, recordType: A, values: [1.2.3.4], ttl: -1`), want: []string{`spec.ttl: Invalid value: -1: must be between 0 and 2147483647, inclusive`}},
		"A13.4/a ttl too large":           {now: record(`name: a.example.com, recordType: A, values: [1.2.3.4], ttl: 4294967296`), want: []string{`spec.ttl: Invalid value: 4294967296: must be between 0 and 2147483647, inclusive`}},
		"A13.4/region and zone are empty": {now: record(`name: a.example.com, recordType: A, values: [1.2.3.4], region: "", zone: ""`), want: []string{`spec.region: Invalid value: "": field cannot be empty if specified`, `spec.zone: Invalid value: "": field cannot be empty if specified`}},
		"A13.4/AAAA in a long form":       {now: record(`name: a.example.com, recordType: AAAA, values: ["2001:db8:f00:0:0:0:0:1"]`)},
		"WB-19, AAAA with IPv4":           {now: record(`name: a.example.com, recordType: AAAA, values: [1.2.3.4]`)},
		"A13.4/AAAA with a name":          {now: record(`name: a.example.com, recordType: AAAA, values: [1.2.3.4, example.com]`), want: []string{`spec.values[1]: Invalid value: "example.com": ` + ip}},
		"WB-19, A with an IPv6 address":   {now: record(`name: a.example.com, recordType: A, values: ["2001:db8::1"]`)},
	})
}

func TestNetworks(t *testing.T) {
	of := func(families, pods, services string) string {
		return `{type: p, ipFamilies: ` + families + `, podCIDR: "` + pods + `", serviceCIDR: "` + services + `"}`
	}
	four := func(families string) string { return of(families, "10.0.0.0/16", "10.1.0.0/16") }
	const a, b = "2001:db8:1::/48", "2001:db8:2::/48"
	check(t, "Network", map[string]judged{
		"EV-23, IPv6 without families":          {now: of("[]", a, b), want: []string{`spec.podCIDR: Invalid value: "2001:db8:1::": must be a valid IPv4 address`, `spec.serviceCIDR: Invalid value: "2001:db8:2::": must be a valid IPv4 address`}},
		"EV-23, IPv4 in an IPv6 network":        {now: four("[IPv6]"), want: []string{`spec.podCIDR: Invalid value: "10.0.0.0": must be a valid IPv6 address`, `spec.serviceCIDR: Invalid value: "10.1.0.0": must be a valid IPv6 address`}},
		"EV-22, no ranges":                      {now: of("[]", "x", "y"), want: []string{`spec.podCIDR: Invalid value: "x": invalid CIDR address: x`, `spec.serviceCIDR: Invalid value: "y": invalid CIDR address: y`}},
		"EV-24, the same range":                 {now: of("[]", "10.0.0.0/16", "10.0.0.0/16"), want: []string{`spec.serviceCIDR: Invalid value: "10.0.0.0/16": must not overlap with "spec.podCIDR" ("10.0.0.0/16")`}},
		"EV-24/one in the other":                {now: of("[]", "10.0.3.0/24", "10.0.0.0/8"), want: []string{`spec.serviceCIDR: Invalid value: "10.0.0.0/8": must not overlap with "spec.podCIDR" ("10.0.3.0/24")`}},
		"EV-24, the same range, IPv6 only":      {now: of("[IPv6]", a, a)},
		"EV-23, two families":                   {now: four("[IPv6, IPv4]")},
		"EV-21, unknown families":               {now: of("[foo, bar]", "x", ""), want: []string{`spec.ipFamilies[0]: Unsupported value: "foo": supported values: "IPv4", "IPv6"`, `spec.ipFamilies[1]: Unsupported value: "bar": supported values: "IPv4", "IPv6"`}},
		"EV-21, families twice":                 {now: four("[IPv4, IPv6, IPv4, IPv6]"), want: []string{`spec.ipFamilies[2]: Duplicate value: "IPv4"`, `spec.ipFamilies[3]: Duplicate value: "IPv6"`}},
		"EV-20/EV-21, the type is still wanted": {now: `{ipFamilies: [foo]}`, want: []string{`spec.type: Required value: field is required`, `spec.ipFamilies[0]: Unsupported value: "foo": supported values: "IPv4", "IPv6"`}},
		"EV-25, a second family":                {now: four("[IPv4, IPv6]"), old: four("[IPv4]")},
		"EV-25, and back":                       {now: four("[IPv4]"), old: four("[IPv4, IPv6]")},
		"EV-25/null and [] are equal":           {now: four("[]"), old: four("null")},
		"EV-25, IPv6 stays alone":               {now: of("[IPv6, IPv4]", a, b), old: of("[IPv6]", a, b), want: []string{`spec.ipFamilies: Forbidden: unsupported IP family update: oldIPFamilies=[IPv6], newIPFamilies=[IPv6 IPv4]`}},
		"EV-25, another order":                  {now: four("[IPv6, IPv4]"), old: four("[IPv4, IPv6]"), want: []string{`spec.ipFamilies: Forbidden: unsupported IP family update: oldIPFamilies=[IPv4 IPv6], newIPFamilies=[IPv6 IPv4]`}},
		"EV-25, another order, back":            {now: four("[IPv4, IPv6]"), old: four("[IPv6, IPv4]"), want: []string{`spec.ipFamilies: Forbidden: unsupported IP family update: oldIPFamilies=[IPv6 IPv4], newIPFamilies=[IPv4 IPv6]`}},
		"EV-25, another family":                 {now: four("[IPv6]"), old: four("[IPv4]"), want: []string{`spec.ipFamilies: Forbidden: unsupported IP family update: oldIPFamilies=[IPv4], newIPFamilies=[IPv6]`, `spec.podCIDR: Invalid value: "10.0.0.0": must be a valid IPv6 address`, `spec.serviceCIDR: Invalid value: "10.1.0.0": must be a valid IPv6 address`}},
		"EV-26/none becomes IPv4":               {now: four("[IPv4]"), old: four("null"), want: []string{`spec.ipFamilies: Forbidden: unsupported IP family update: oldIPFamilies=[], newIPFamilies=[IPv4]`}},
	})
}

func TestOperatingSystemConfigs(t *testing.T) {
	of := func(fields string) string { return `{purpose: reconcile, ` + fields + `}` }
	const inline = `content: {inline: {data: x}}`
	file := func(path, host string) string {
		if host != "" {
			host = ", hostName: " + host
		}
		return `{path: ` + path + host + `, ` + inline + `}`
	}
	const form = `either 'secretRef', 'inline' or 'imageRef' must be provided`
	check(t, "OperatingSystemConfig", map[string]judged{
		"A13.6/another purpose": {now: `{purpose: foo}`, want: []string{`spec.purpose: Unsupported value: "foo": supported values: "provision", "reconcile"`}},
		"A13.6/a unit": {now: of(`units: [{dropIns: [{}], filePaths: [/x]}]`), want: []string{
			`spec.units[0].name: Required value: field is required`, `spec.units[0].dropIns[0].name: Required value: field is required`,
			`spec.units[0].dropIns[0].content: Required value: field is required`, `spec.units[0].filePaths[0]: Invalid value: "/x": 'filePath' requires a matching 'path' in 'spec.files'`}},
		"A13.6/an empty file":             {now: of(`files: [{}]`), want: []string{`spec.files[0].path: Required value: field is required`, `spec.files[0].content: Required value: ` + form}},
		"WB-17, two contents":             {now: of(`files: [{path: a, content: {secretRef: {name: obj, dataKey: k}, inline: {data: secret}}}]`), want: []string{`spec.files[0].content: Invalid value: ` + form + `, not multiple at the same time`}},
		"A13.6/an empty reference":        {now: of(`files: [{path: a, content: {secretRef: {}}}]`), want: []string{`spec.files[0].content.secretRef.name: Required value: field is required`, `spec.files[0].content.secretRef.dataKey: Required value: field is required`}},
		"A13.6/an empty image":            {now: of(`files: [{path: a, content: {imageRef: {}}}]`), want: []string{`spec.files[0].content.imageRef.image: Required value: field is required`, `spec.files[0].content.imageRef.filePathInImage: Required value: field is required`}},
		"A13.6/an unknown encoding":       {now: of(`files: [{path: a, content: {inline: {encoding: foo}}}]`), want: []string{`spec.files[0].content.inline.encoding: Unsupported value: "foo": supported values: "", "b64"`, `spec.files[0].content.inline.data: Required value: field is required`}},
		"A13.6/a path twice":              {now: of(`files: [` + file("path3", "") + `, ` + file("path3", "") + `]`), want: []string{`spec.files[1].path: Duplicate value: "path3"`}},
		"A13.6/a path for two hosts":      {now: of(`files: [` + file("path1", "my-node") + `, ` + file("path1", "my-node-2") + `]`)},
		"A13.6/a path twice for a host":   {now: of(`files: [` + file("path8", "my-node") + `, ` + file("path8", "my-node") + `]`), want: []string{`spec.files[1].path: Duplicate value: "path8"`}},
		"A13.6/a path for all and one":    {now: of(`files: [` + file("path9", "") + `, ` + file("path9", "my-node") + `]`), want: []string{`spec.files[1].path: Duplicate value: "path9"`}},
		"EV-30/a path for one and all":    {now: of(`files: [` + file("path9", "my-node") + `, ` + file("path9", "") + `]`), want: []string{`spec.files[1].path: Duplicate value: "path9"`}},
		"WB-20/EV-31, a later host twice": {now: of(`files: [` + file("a", "h1") + `, ` + file("a", "h2") + `, ` + file("a", "h2") + `]`), want: []string{`spec.files[2].path: Duplicate value: "a"`}},
		"A13.6/a wrong host":              {now: of(`files: [` + file("a", `"-x'"`) + `]`), want: []string{`spec.files[0].hostName: Invalid value: "-x'": ` + subdomainText}},
	})
	const both = `{metadata: {name: obj, namespace: ns}, spec: {purpose: reconcile, units: [{name: u, filePaths: [/s]}], files: [{path: /f, content: {inline: {data: x}}}]}, status: {extensionUnits: [{dropIns: [{}], filePaths: [/x]}], extensionFiles: [{path: /f, content: {inline: {data: x}}}, {path: /s, content: {inline: {data: x}}}]}}`
	want := []string{
		`status.extensionUnits[0].name: Required value: field is required`, `status.extensionUnits[0].dropIns[0].name: Required value: field is required`,
		`status.extensionUnits[0].dropIns[0].content: Required value: field is required`, `status.extensionUnits[0].filePaths[0]: Invalid value: "/x": 'filePath' requires a matching 'path' in 'spec.files'`,
		`status.extensionFiles[0].path: Duplicate value: "/f"`}
	if got := causes(t, ask(t, "OperatingSystemConfig", both, "")); !cmp.Equal(got, want) {
		t.Errorf("A13.6: what extensions add: %s", cmp.Diff(want, got))
	}
}

func TestContainerd(t *testing.T) {
	of := func(fields string) string {
		return `{purpose: reconcile, criConfig: {name: containerd, containerd: {sandboxImage: i, ` + fields + `}}}`
	}
	registry := func(fields string) string { return of(`registries: [{` + fields + `}]`) }
	const upstream = `spec.criConfig.containerd.registries[0].upstream: Invalid value: `
	const registries, plugins = `spec.criConfig.containerd.registries[0].`, `spec.criConfig.containerd.plugins[0].`
	check(t, "OperatingSystemConfig", map[string]judged{
		"A13.6/for provisioning":          {now: `{purpose: provision, criConfig: {name: containerd, containerd: {registries: [{upstream: "?"}]}}}`, want: []string{`spec.criConfig.containerd: Forbidden: containerd config is not allowed for OperatingSystemConfig with purpose 'provision'`}},
		"A13.6/a name for provisioning":   {now: `{purpose: provision, criConfig: {name: containerd}}`},
		"A13.6/a path":                    {now: registry(`upstream: a/b.io`), want: []string{upstream + `"a/b.io": ` + subdomainText}},
		"A13.6/a scheme":                  {now: registry(`upstream: "http://foo.bar"`), want: []string{upstream + `"http://foo.bar": ` + subdomainText}},
		"A13.6/a host and a path":         {now: registry(`upstream: foo.bar/baz`), want: []string{upstream + `"foo.bar/baz": ` + subdomainText}},
		"A13.6/a port":                    {now: registry(`upstream: "foo.bar:5001"`)},
		"A13.6/a port too large":          {now: registry(`upstream: "foo.bar:65536"`), want: []string{upstream + `"foo.bar:65536": port '65536' is not valid, valid port must be in the range [1, 65535]`}},
		"A13.6/a port that begins with 0": {now: registry(`upstream: "foo.bar:0443"`), want: []string{upstream + `"foo.bar:0443": port '0443' is not valid, valid port must be in the range [1, 65535]`}},
		"A13.6/no port":                   {now: registry(`upstream: "foo.bar:x"`), want: []string{upstream + `"foo.bar:x": ` + subdomainText}},
		"A13.6/the default":               {now: registry(`upstream: _default`)},
		"A13.6/a registry twice":          {now: of(`registries: [{upstream: a.b}, {upstream: a.b}]`), want: []string{`spec.criConfig.containerd.registries[1].upstream: Duplicate value: "a.b"`}},
		"A13.6/another scheme":            {now: registry(`upstream: a.b, server: "ftp://foo.bar"`), want: []string{registries + `server: Unsupported value: "ftp": supported values: "http", "https"`}},
		"A13.6/no URL":                    {now: registry(`upstream: a.b, server: "http://%zz"`), want: []string{registries + `server: Required value: url must be a valid URL: parse "http://%zz": invalid URL escape "%zz"; desired format: https://host[:port]`}},
		"A13.6/a host without one":        {now: registry(`upstream: a.b, hosts: [{url: 1a}]`), want: []string{registries + `hosts[0].url: Invalid value: "1a": host must be provided; desired format: https://host[:port]`}},
		"WB-17/passwords are not told":    {now: registry(`upstream: a.b, server: "http://user:pass%zz@host", hosts: [{url: "mailto:user:secret@x"}]`), want: []string{registries + `server: Required value: url must be a valid URL: it cannot be parsed; desired format: https://host[:port]`, registries + `hosts[0].url: Invalid value: host must be provided; desired format: https://host[:port]`}},
		"A13.6/a host of any scheme":      {now: registry(`upstream: a.b, hosts: [{url: "foo://bar", capabilities: [pull, push, resolve]}]`)},
		"A13.6/a capability":              {now: registry(`upstream: a.b, hosts: [{url: "https://a", capabilities: [foo]}]`), want: []string{registries + `hosts[0].capabilities[0]: Unsupported value: "foo": supported values: "pull", "push", "resolve"`}},
		"A13.6/no image":                  {now: `{purpose: reconcile, criConfig: {containerd: {sandboxImage: ""}}}`, want: []string{`spec.criConfig.containerd.sandboxImage: Required value: field is required`}},
		"A13.6/an operation":              {now: of(`plugins: [{op: invalid-op, path: [a]}]`), want: []string{plugins + `op: Unsupported value: "invalid-op": supported values: "add", "remove"`}},
		"A13.6/no path":                   {now: of(`plugins: [{path: []}]`), want: []string{plugins + `path: Required value: must provide a path`}},
		"WB-17, values of a list":         {now: of(`plugins: [{path: [a], values: [secret]}]`), want: []string{plugins + `values: Invalid value: provided values must be given in json format`}},
		"A13.6/values":                    {now: of(`plugins: [{op: add, path: [a], values: {a: 1}}, {path: [a]}, {op: remove, path: [a]}]`)},
		"A13.6/values to be removed":      {now: of(`plugins: [{op: remove, path: [a], values: {}}]`), want: []string{plugins + `values: Forbidden: values must not be specified when 'remove' operation is used`}},
		"A13.6/another driver":            {now: `{purpose: reconcile, criConfig: {cgroupDriver: unknown}}`, want: []string{`spec.criConfig.cgroupDriver: Unsupported value: "unknown": supported values: "cgroupfs", "systemd"`}},
	})
}

func TestWorkers(t *testing.T) {
	of := func(pool string) string { return `{type: p, region: r, secretRef: {name: s}, pools: [` + pool + `]}` }
	capacity := func(c string) string {
		return of(`{machineType: m, machineImage: {name: i, version: '1'}, name: w, architecture: amd64, nodeTemplate: {capacity: ` + c + `}}`)
	}
	const at = `spec.pools[0].`
	const inCapacity = at + `nodeTemplate.capacity.`
	check(t, "Worker", map[string]judged{
		"A13.7/an empty pool": {now: of(`{architecture: test}`), want: []string{at + `machineType: Required value: field is required`, at + `machineImage.name: Required value: field is required`,
			at + `machineImage.version: Required value: field is required`, at + `name: Required value: field is required`, at + `architecture: Unsupported value: "test": supported values: "amd64", "arm64"`}},
		"A13.7/below zero":         {now: capacity(`{cpu: -1, gpu: 1, memory: 8Gi}`), want: []string{inCapacity + `cpu: Invalid value: "-1": must be greater than or equal to 0`}},
		"A13.7/half a Pod":         {now: capacity(`{pods: 500m}`), want: []string{inCapacity + `pods: Invalid value: "500m": must be an integer`}},
		"A13.7/half a device":      {now: capacity(`{nvidia.com/gpu: 1500m, hugepages.kubernetes.io/x: 500m, requests.a.b/c: 500m}`), want: []string{inCapacity + `nvidia.com/gpu: Invalid value: "1500m": must be an integer`}},
		"WB-19/A13.7, names twice": {now: of(`{machineType: m, machineImage: {name: i, version: '1'}, name: w}, {machineType: m, machineImage: {name: i, version: '1'}, name: w}`)},
		"A13.7/without pools":      {now: `{type: p, region: r, secretRef: {name: s}}`},
	})
}

func TestEtcds(t *testing.T) {
	of := func(store string) string { return `{backup: {store: ` + store + `}}` }
	check(t, "Etcd", map[string]judged{
		"EV-41, no store":              {now: `{backup: {}}`},
		"EV-42, another prefix":        {now: of(`{prefix: invalid}`), want: []string{`spec.backup.store.prefix: Invalid value: "invalid": must contain object name and namespace`}},
		"EV-43, an unknown provider":   {now: of(`{prefix: ns/obj, provider: not-supported}`), want: []string{`spec.backup.store.provider: Invalid value: "not-supported": unsupported storage provider: 'not-supported'`}},
		"EV-43, a known one":           {now: of(`{prefix: ns/obj, provider: GCS}`)},
		"EV-43/letters count":          {now: of(`{prefix: ns/obj, provider: gcS}`), want: []string{`spec.backup.store.provider: Invalid value: "gcS": unsupported storage provider: 'gcS'`}},
		"EV-43/none":                   {now: of(`{prefix: ns/obj, provider: ""}`)},
		"EV-45, the prefix":            {now: of(`{prefix: ns/obj/2}`), old: of(`{prefix: ns/obj}`), want: []string{`spec.backup.store.prefix: Invalid value: "ns/obj/2": field is immutable`}},
		"EV-45/a store comes":          {now: of(`{prefix: ns/obj/2}`), old: `{}`},
		"EV-45, replicas and provider": {now: `{replicas: 3, backup: {store: {prefix: ns/obj, provider: aws}}}`, old: `{replicas: 1, backup: {store: {prefix: ns/obj, provider: gcp}}}`},
	})
	if got := causes(t, ask(t, "Etcd", deleted("Etcd", "{replicas: 3}"), deleted("Etcd", "{replicas: 1}"))); !cmp.Equal(got, []string{"spec: Invalid value: field is immutable"}) {
		t.Errorf("EV-44, WB-17: %q", got)
	}
}

func TestExposures(t *testing.T) {
	of := func(fields string) string { return `{type: p, port: 443, ` + fields + `}` }
	at := func(addresses string) string { return of(`endpoints: [{nodeName: a, addresses: [` + addresses + `]}]`) }
	ref := func(r string) string { return of(`endpoints: [{nodeName: a}], credentialsRef: ` + r) }
	const first, types = `spec.endpoints[0].addresses[0].`, `supported values: "ExternalDNS", "ExternalIP", "Hostname", "InternalDNS", "InternalIP"`
	const kind = `supported values: "/v1, Kind=Secret"`
	check(t, "SelfHostedShootExposure", map[string]judged{
		"A13.9/a port":          {now: `{type: p, port: 70000, endpoints: [{nodeName: a}]}`, want: []string{`spec.port: Invalid value: 70000: must be between 1 and 65535, inclusive`}},
		"A13.9/no node":         {now: of(`endpoints: [{}]`), want: []string{`spec.endpoints[0].nodeName: Required value: field is required`}},
		"A13.9/no IP":           {now: at(`{type: InternalIP, address: not-an-ip}`), want: []string{first + `address: Invalid value: "not-an-ip": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`}},
		"A13.9/leading zeros":   {now: at(`{type: ExternalIP, address: 010.0.0.1}`)},
		"A13.9/no host":         {now: at(`{type: Hostname, address: "invalid_host!"}`), want: []string{first + `address: Invalid value: "invalid_host!": ` + subdomainText}},
		"A13.9/no type":         {now: at(`{type: "", address: a}`), want: []string{first + `type: Required value: field is required`, first + `address: Invalid value: "a": invalid address for unsupported address type ""`}},
		"A13.9/an unknown type": {now: at(`{type: UnknownType, address: a}`), want: []string{first + `type: Unsupported value: "UnknownType": ` + types, first + `address: Invalid value: "a": invalid address for unsupported address type "UnknownType"`}},
		"A13.9/no address":      {now: at(`{type: ExternalDNS}`), want: []string{first + `address: Required value: field is required`}},
		"A13.9/an empty reference": {now: ref(`{}`), want: []string{`spec.credentialsRef.apiVersion: Required value: must provide an apiVersion`, `spec.credentialsRef.kind: Required value: must provide a kind`,
			`spec.credentialsRef.namespace: Required value: must provide a namespace`, `spec.credentialsRef.name: Required value: must provide a name`, `spec.credentialsRef: Unsupported value: "/, Kind=": ` + kind}},
		"A13.9/a ConfigMap":       {now: ref(`{apiVersion: v1, kind: ConfigMap, namespace: ns, name: s}`), want: []string{`spec.credentialsRef: Unsupported value: "/v1, Kind=ConfigMap": ` + kind}},
		"A13.9/another namespace": {now: ref(`{apiVersion: v1, kind: Secret, namespace: other, name: s}`), want: []string{`spec.credentialsRef.namespace: Invalid value: "other": must equal metadata.namespace`}},
		"A13.9/a wrong name":      {now: ref(`{apiVersion: v1, kind: Secret, namespace: ns, name: -invalid.}`), want: []string{`spec.credentialsRef.name: Invalid value: "-invalid.": ` + subdomainText}},
		"A13.9/no reference":      {now: ref(`null`)},
	})
}
