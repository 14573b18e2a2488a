package admissioncontroller

import (
	"context"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/seedauthorizer/debug"
	"github.com/espalier-project/espalier/internal/seedauthorizer/garden"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/seedauthorizer/restriction"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
	"github.com/espalier-project/espalier/internal/webhook/auditpolicy"
	"github.com/espalier-project/espalier/internal/webhook/authenticationconfig"
	"github.com/espalier-project/espalier/internal/webhook/authorizationconfig"
	"github.com/espalier-project/espalier/internal/webhook/internaldomain"
	"github.com/espalier-project/espalier/internal/webhook/kubeconfigsecret"
	"github.com/espalier-project/espalier/internal/webhook/namespacedeletion"
	"github.com/espalier-project/espalier/internal/webhook/providersecretlabels"
	"github.com/espalier-project/espalier/internal/webhook/resourcesize"
	"github.com/espalier-project/espalier/internal/webhook/shootkubeconfigsecretref"
	"github.com/espalier-project/espalier/internal/webhook/updaterestriction"
)

// Row is a feature of admission-controller.
type Row = feature.Row[configuration, *Process]

type configuration = config.AdmissionControllerConfiguration

// Table returns all features, in the order in which they start. Every replica runs all of them (AE-24: there is no
// leader).
func Table() []Row {
	return []Row{
		{
			Name: "graph", Runs: feature.EveryReplica,
			Doc:     "Watches the garden, and keeps the graphs of seeds and self-hosted shoots.",
			Reads:   reads(func() []feature.Read { return garden.Reads(relation.Watches, relation.SelfHosted) }),
			Metrics: graphMetrics,
			Start:   func(_ context.Context, p *Process) error { return p.Manager.Add(p.watches) },
		},
		{
			Name: rules.SeedName, Runs: feature.EveryReplica,
			Doc:   "Authorizes requests of clients of seeds.",
			Path:  rules.SeedPath,
			Reads: reads(rules.SeedReads), Writes: writes(selectorQuestion), Metrics: authorizerMetrics,
			Start: func(_ context.Context, p *Process) error {
				return p.review(rules.SeedName, rules.SeedPath, p.seeds)
			},
		},
		{
			Name: rules.ShootName, Runs: feature.EveryReplica,
			Doc:   "Authorizes requests of clients of self-hosted shoots.",
			Path:  rules.ShootPath,
			Reads: reads(rules.ShootReads), Writes: writes(selectorQuestion), Metrics: authorizerMetrics,
			Start: func(_ context.Context, p *Process) error {
				return p.review(rules.ShootName, rules.ShootPath, p.shoots)
			},
		},
		restricting(Row{
			Name: restriction.SeedName,
			Doc:  "Checks objects that clients of seeds create, and changes that depend on content.",
			Path: restriction.SeedPath, Reads: reads(restriction.SeedReads),
			Validating: one(restriction.SeedRegistration),
		}, func(p *Process, log logr.Logger) decision {
			h := p.seedRestriction
			h.Log = log
			return h.Decide
		}),
		restricting(Row{
			Name: restriction.ShootName,
			Doc:  "Checks objects that clients of self-hosted shoots create, and changes that depend on content.",
			Path: restriction.ShootPath, Reads: reads(restriction.ShootReads),
			Validating: one(restriction.ShootRegistration),
		}, func(p *Process, log logr.Logger) decision {
			h := p.shootRestriction
			h.Log = log
			return restriction.SelfHosted{Handler: &h}.Decide
		}),
		hook(Row{
			Name: restriction.ReservedName, Doc: "Reserves ServiceAccounts of self-hosted shoots' extensions, and their tokens, for the shoots' gardenlets.",
			Path: restriction.ReservedPath, Validating: one(restriction.ReservedRegistration),
		}, func(*Process) (admission.Func, error) { return admission.Decide(restriction.Reserved), nil }),
		{
			Name: "guard", Switch: feature.GuardSwitch, Runs: feature.EveryReplica,
			Doc:    "Asks the API server who may read metrics, profiles and debug pages.",
			Writes: func(*configuration) []feature.Write { return feature.GuardWrites(feature.Garden) }, Start: func(context.Context, *Process) error { return nil }, // The manager serves it.
		},
		page("graph page of seeds", debug.SeedPath, func(p *Process) *rules.Authorizer { return p.seeds }),
		page("graph page of self-hosted shoots", debug.ShootPath, func(p *Process) *rules.Authorizer { return p.shoots }),
		// The other webhooks (B0).
		indexed(Row{
			Name: auditpolicy.Name, Doc: "Judges the audit policies of Shoots.",
			Path: auditpolicy.Path, Reads: reads(auditpolicy.Reads), Validating: one(auditpolicy.Registration),
		}, func(p *Process) (admission.Func, error) { return auditpolicy.Decide(p.users, p.live) }),
		indexed(Row{
			Name: authenticationconfig.Name, Doc: "Judges the authentication configurations of Shoots.",
			Path: authenticationconfig.Path, Reads: reads(authenticationconfig.Reads), Validating: one(authenticationconfig.Registration),
		}, func(p *Process) (admission.Func, error) {
			return authenticationconfig.Decide(p.users, p.live), nil
		}),
		indexed(Row{
			Name: authorizationconfig.Name, Doc: "Judges the authorization configurations of Shoots.",
			Path: authorizationconfig.Path, Reads: reads(authorizationconfig.Reads), Validating: one(authorizationconfig.Registration),
		}, func(p *Process) (admission.Func, error) {
			return authorizationconfig.Decide(p.users, p.live), nil
		}),
		hook(Row{
			Name: internaldomain.Name, Doc: "Allows only one Secret with the internal domain, and no change of it while Shoots use it.",
			Path: internaldomain.Path, Reads: reads(internaldomain.Reads), Validating: one(internaldomain.Registration),
		}, func(p *Process) (admission.Func, error) { return internaldomain.Decide(p.live), nil }),
		rejecting(hook(Row{
			Name: kubeconfigsecret.Name, Doc: "Refuses kubeconfigs that run programs, read files or impersonate.",
			Path: kubeconfigsecret.Path, Validating: one(kubeconfigsecret.Registration),
		}, func(p *Process) (admission.Func, error) { return kubeconfigsecret.Decide(p.rejections), nil })),
		hook(Row{
			Name: namespacedeletion.Name, Doc: "Refuses to delete the namespace of a project.",
			Path: namespacedeletion.Path, Reads: reads(namespacedeletion.Reads), Validating: one(namespacedeletion.Registration),
		}, func(p *Process) (admission.Func, error) { return namespacedeletion.Decide(p.live), nil }),
		indexed(Row{
			Name: providersecretlabels.Name, Doc: "Labels credentials with the providers that bindings use them for.",
			Path: providersecretlabels.Path, Mutating: one(providersecretlabels.Registration),
		}, func(p *Process) (admission.Func, error) {
			return providersecretlabels.Decide(providersecretlabels.Options{Bindings: p.users, RemoveUnreferenced: p.Config.Server.ProviderSecretLabels.RemoveUnreferenced}), nil
		}),
		rejecting(hook(Row{
			Name: resourcesize.Name, Doc: "Limits the size and the number of objects, if limits are configured.",
			Path: resourcesize.Path,
			Reads: func(cfg *configuration) []feature.Read {
				return resourcesize.Reads(cfg.Server.ResourceAdmissionConfiguration)
			},
			Validating: configured(func(cfg *configuration) []admissionregistrationv1.ValidatingWebhook {
				return resourcesize.Registrations(cfg.Server.ResourceAdmissionConfiguration)
			}),
		}, func(p *Process) (admission.Func, error) {
			return resourcesize.Decide(resourcesize.Options{
				Config: p.Config.Server.ResourceAdmissionConfiguration, Garden: p.live, Rejections: p.rejections, Log: p.Log.WithName("webhook." + resourcesize.Name),
			}), nil
		})),
		indexed(Row{
			Name: shootkubeconfigsecretref.Name, Doc: "Keeps the kubeconfig in Secrets that Shoots refer to.",
			Path: shootkubeconfigsecretref.Path, Validating: one(shootkubeconfigsecretref.Registration),
		}, func(p *Process) (admission.Func, error) { return shootkubeconfigsecretref.Decide(p.users), nil }),
		hook(Row{
			Name: updaterestriction.Name, Doc: "Protects Secrets and ConfigMaps with a system label against changes by users.",
			Path: updaterestriction.Path, Validating: one(updaterestriction.Registration),
		}, func(*Process) (admission.Func, error) { return updaterestriction.Decide(), nil }),
	}
}
