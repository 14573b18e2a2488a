// Package nodeagentauthorizer is the table of node-agent-authorizer's one feature, for one shoot or for many.
package nodeagentauthorizer
