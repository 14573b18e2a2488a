package rules

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
events, certificate signing requests, and the list and the watch of Nodes are open. Where there are Machines, an agent whose Machine is gone has no right to any Secret and sees no Node.

The configuration of the operating system is the Secret that the label ` + "`worker.gardener.cloud/gardener-node-agent-secret-name`" + ` of the Machine's node template names.
The host is the one of the Machine's label ` + "`node`" + `. Labels of the own Node, which the agent may write, decide nothing. While the Machine has no such label, what the configuration
refers to for single hosts is closed.

Where there are no Machines, the Node's label of the same name names the configuration, and then only if the Secret has label ` + "`worker.gardener.cloud/pool`" + `. What the authorizer saw first
counts until the Node goes: a later configuration must be of the pool that the Node's label ` + "`worker.gardener.cloud/pool`" + ` named then, and the host is the one of label
` + "`kubernetes.io/hostname`" + `. A Node without that label gets nothing that is for single hosts, also if the label comes later. While such a Node does not exist yet, the configurations of all pools are open, with what they
refer to for the host of the agent's name.

The Lease for roll-outs has the name of the configuration. Where there are no Machines it counts only if it starts with ` + "`gardener-node-agent-`" + `.
`)
	return out.String()
}
