// Package nodeagentauthorizer has the table with node-agent-authorizer's one feature, for one shoot or for many.
package nodeagentauthorizer
