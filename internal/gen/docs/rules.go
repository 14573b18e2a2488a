package main

import (
	"strings"

	nodeagentrules "github.com/espalier-project/espalier/internal/nodeagentauthorizer/rules"
	seedrules "github.com/espalier-project/espalier/internal/seedauthorizer/rules"
)

// seedRules is the reference page of the SeedAuthorizer's rules, made from the table.
func seedRules() string {
	var out strings.Builder
	rules, steps, specials := seedrules.SeedReference()
	out.WriteString(`# Rules of the SeedAuthorizer

Generated from the table of rules; ` + "`make generate`" + ` writes it anew.

*always* are verbs that are allowed for any object, *by path* those for objects that lead to the client's Seed in the
[dependency graph](graph.md), named ones only. Everything else is left to the next authorizer, with a reason. Rules hold for gardenlets
and extensions alike; where extensions have a rule of their own, it follows that of gardenlets.

| rule | resource | always | by path | subresources | list and watch of several with | special cases |
|---|---|---|---|---|---|---|
`)
	out.WriteString(rules)
	out.WriteString(`
¹ Under ` + "`readScope: All`" + `, which is the default under profile contract, get, list and watch of these are always allowed, in any namespace and without a selector. Under
` + "`readScope: Related`" + ` the table holds.

² Under ` + "`writeScope: Owned`" + ` update, patch and delete of these need a *managed* edge as the first one of the path.

## Steps of a decision

| step | if | then |
|---|---|---|
`)
	out.WriteString(steps)
	out.WriteString(`
An object of a watched kind that the graph has not seen yet is read once before SA-14.

## Special cases

| case | what is allowed |
|---|---|
`)
	out.WriteString(specials)
	return out.String()
}

// shootRules is the reference page of the ShootAuthorizer's rules.
func shootRules() string {
	var out strings.Builder
	rules, specials, gardenadm := seedrules.ShootReference()
	out.WriteString(`# Rules of the ShootAuthorizer

Generated from the table of rules; ` + "`make generate`" + ` writes it anew. Steps and columns are those of the [SeedAuthorizer](seed-authorizer-rules.md);
the goal of paths is the client's own Shoot, in a [graph](graph.md#self-hosted-shoots) of its own.

| rule | resource | always | by path | subresources | list and watch of several with | special cases |
|---|---|---|---|---|---|---|
`)
	out.WriteString(rules)
	out.WriteString(`
## Special cases

| case | what is allowed |
|---|---|
`)
	out.WriteString(specials)
	out.WriteString("| SH-16b | get, list, watch of the own bootstrap token in kube-system, for gardenlets: by the name that follows from the shoot's and a description that names the shoot or a ManagedSeed of the shoot; other tokens not, and extensions none |\n")
	out.WriteString("| SH-16c | delete of a bootstrap token whose description names the shoot, for gardenlets |\n")
	out.WriteString("| SH-23 | whatever the SeedAuthorizer allows an extension, for extensions of a Shoot in namespace garden that is a seed, too: of which a ManagedSeed makes the Seed of its name |\n")
	out.WriteString("\n## gardenadm (SH-22)\n\n| resource | verbs | objects |\n|---|---|---|\n")
	out.WriteString(gardenadm)
	out.WriteString("\nThe own Shoot is named in the request; a creation carries no name, and ShootRestriction looks at the object's.\n")
	return out.String()
}

// nodeAgentRules is the reference page of the node-agent authorizer's rules, made from the table.
func nodeAgentRules() string {
	var out strings.Builder
	out.WriteString(`# Rules of the node-agent authorizer

Generated from the table of rules; ` + "`make generate`" + ` writes it anew.

An agent is a user ` + "`" + nodeagentrules.UserPrefix + "<machine>`" + ` in group ` + "`" + nodeagentrules.AgentsGroup + "`" + `; the rest of the name is that of its Machine, or of its Node where there are no
Machines. About others there is no opinion. Whatever an agent asks that is not in the table is denied, and so is what cannot be decided because something cannot be read.

| rule | resource | verbs | subresources | objects |
|---|---|---|---|---|
`)
	out.WriteString(nodeagentrules.Reference())
	out.WriteString(`
- The own Node is the one that the label ` + "`node`" + ` of the Machine names.
  Without it, or while the Node does not exist, only the common Secrets, the own configuration, events, certificate signing requests, and the list and the watch of Nodes are open.
- The configuration is the Secret that the label ` + "`worker.gardener.cloud/gardener-node-agent-secret-name`" + ` of the Machine's node template names; what it refers to for single hosts is open for the host in the Machine's label ` + "`node`" + `.
  Labels of the Node, which the agent may write, decide nothing.
- An agent whose Machine is gone has no right to any Secret and sees no Node.
- The Lease for roll-outs has the name of the configuration.

Where there are no Machines, the Node's label ` + "`worker.gardener.cloud/gardener-node-agent-secret-name`" + ` names the configuration:

- It counts only if the Secret has the label ` + "`worker.gardener.cloud/pool`" + `; a later one must be of the pool that the Node's label of that name had when the authorizer first saw it, until the Node goes.
- The host is the one that the label ` + "`kubernetes.io/hostname`" + ` had then; without it nothing for single hosts is open.
- While the Node does not exist yet, the configurations of all pools are open, with what they refer to for the host of the agent's name.
- The Lease for roll-outs counts only if its name starts with ` + "`gardener-node-agent-`" + `.
`)
	return out.String()
}
