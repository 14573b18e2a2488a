package nodeagent

import (
	"fmt"
	"strings"
)

// Reference is the reference page of the rules, made from the table.
func Reference() string {
	var out strings.Builder
	out.WriteString(`# Rules of the node-agent authorizer

Generated from the table of rules; ` + "`make generate`" + ` writes it anew.

An agent is a user ` + "`" + userPrefix + "<machine>`" + ` in group ` + "`" + group + "`" + `; the rest of the name is that of its Machine, or of its Node where there are no
Machines. About others there is no opinion. Whatever an agent asks that is not in the table is denied, and so is what cannot be decided because something cannot be read.

| rule | API group | resource | verbs | subresources | objects |
|---|---|---|---|---|---|
`)
	for _, r := range rules {
		name := r.group
		if name == "" {
			name = "core"
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s |\n", r.id, name, r.resource, strings.Join(r.verbs, ", "), strings.Join(r.subresources, ", "),
			strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(r.says))
	}
	out.WriteString(`
The own Node is the one that the label ` + "`node`" + ` of the Machine names; without it, or while the Node does not exist, only the common Secrets, the own configuration,
events, certificate signing requests and the list of Nodes are open. Where there are Machines, an agent whose Machine is gone has no right to any Secret.

The Lease for roll-outs has the name of the configuration that the Machine names. Where there are no Machines it is that of the Node's label, which the agent may write: it counts
only if it starts with ` + "`gardener-node-agent-`" + ` and is the name of a configuration.

The configuration of the operating system is the Secret that the label ` + "`worker.gardener.cloud/gardener-node-agent-secret-name`" + ` names: of the Machine's node
template, or of the Node where there are no Machines, and then only if the Secret has label ` + "`worker.gardener.cloud/pool`" + `. While such a Node does not exist yet, the
configurations of all pools are open.
`)
	return out.String()
}
