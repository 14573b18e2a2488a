package main

import (
	"encoding/json"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/feature"
)

// hookFact is an entry of a webhook configuration, without its clientConfig.
type hookFact struct {
	// Kind is Mutating or Validating.
	Kind string `json:"kind"`
	// Path is the path of the webhook.
	Path string `json:"path"`
	// Modes are the modes of installations that have the entry; empty means all.
	Modes []string `json:"modes"`
	// Each is the list for each of whose elements the entry has a rule. Without an element there is no entry.
	Each *each       `json:"each"`
	When []condition `json:"when"`
	// Entry has $(prefix) in place of the prefix of the deployment's name, and an expression with the key $(base) in
	// place of the namespaces to which most webhooks apply.
	Entry map[string]any `json:"entry"`
}

// entry has the parts of a webhook entry as strings, so that entries can be compared; modes are the modes that have
// it.
type entry struct{ kind, path, modes, content string }

// modes are the installations that registrations distinguish between.
var modes = []struct {
	name          string
	shoot, garden bool
}{{"runtime", false, false}, {"runtime-garden", false, true}, {"shoot", true, false}, {"shoot-garden", true, true}}

func hooksOf[C, E any](t table[C], row feature.Row[C, E]) ([]hookFact, error) {
	always, err := entries(row, configured(t, row, nil))
	if err != nil {
		return nil, err
	}
	order := slices.Clone(always)
	ways := conditions(probesOf(t, row), set(always), func(p probe) map[entry]bool {
		if p.each != nil && p.each.Has != "" {
			return set(always) // Further fields of an element affect only rights.
		}
		list, failed := entries(row, configured(t, row, p.set))
		if failed != nil {
			err = failed
		}
		for _, e := range list {
			if !slices.Contains(order, e) {
				order = append(order, e)
			}
		}
		return set(list)
	})
	if err != nil {
		return nil, err
	}
	var all []hookFact
	for _, e := range order {
		for _, way := range ways[e] {
			fact := hookFact{Kind: e.kind, Path: e.path, Modes: strings.Fields(e.modes), Each: way.each, When: way.when}
			if err := json.Unmarshal([]byte(e.content), &fact.Entry); err != nil {
				return nil, err
			}
			if len(fact.Modes) == len(modes) {
				fact.Modes = nil
			}
			all = append(all, fact)
		}
	}
	return all, nil
}

func set[K comparable](list []K) map[K]bool {
	all := map[K]bool{}
	for _, key := range list {
		all[key] = true
	}
	return all
}

// entries returns the entries of a row for a configuration, in order.
func entries[C, E any](row feature.Row[C, E], cfg *C) ([]entry, error) {
	var all []entry
	add := func(mode, kind string, webhook any, reached admissionregistrationv1.WebhookClientConfig) error {
		content, err := json.Marshal(webhook)
		if err != nil {
			return err
		}
		fields := map[string]any{}
		if err := json.Unmarshal(content, &fields); err != nil {
			return err
		}
		delete(fields, "clientConfig")
		if content, err = json.Marshal(fields); err != nil {
			return err
		}
		for i, e := range all {
			if e.kind == kind && e.path == *reached.URL && e.content == string(content) {
				all[i].modes += " " + mode
				return nil
			}
		}
		all = append(all, entry{kind, *reached.URL, mode, string(content)})
		return nil
	}
	for _, mode := range modes {
		d := feature.Deployment{
			Installation: feature.Installation{
				Prefix: reference("prefix"), Shoot: mode.shoot, Garden: mode.garden,
				Base: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: reference("base"), Operator: metav1.LabelSelectorOpExists}}},
			},
			Reach: func(path string) admissionregistrationv1.WebhookClientConfig {
				return admissionregistrationv1.WebhookClientConfig{URL: &path}
			},
		}
		for _, object := range feature.WebhookConfigurations([]feature.Row[C, E]{row}, cfg, d) {
			switch c := object.(type) {
			case *admissionregistrationv1.MutatingWebhookConfiguration:
				for i := range c.Webhooks {
					if err := add(mode.name, "Mutating", c.Webhooks[i], c.Webhooks[i].ClientConfig); err != nil {
						return nil, err
					}
				}
			case *admissionregistrationv1.ValidatingWebhookConfiguration:
				for i := range c.Webhooks {
					if err := add(mode.name, "Validating", c.Webhooks[i], c.Webhooks[i].ClientConfig); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	return all, nil
}
