// Package nodeagentauthorizer is the table of what node-agent-authorizer does, which is one thing, for one shoot or for many.
package nodeagentauthorizer
