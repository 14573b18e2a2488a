package resourcemanager

import (
	"context"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/cluster/readthrough"
	"github.com/espalier-project/espalier/internal/controller/csrapprover"
	"github.com/espalier-project/espalier/internal/controller/garbagecollector"
	"github.com/espalier-project/espalier/internal/controller/istioclusterconfiguration"
	"github.com/espalier-project/espalier/internal/controller/networkpolicy"
	"github.com/espalier-project/espalier/internal/controller/node/criticalcomponents"
	"github.com/espalier-project/espalier/internal/controller/node/highavailability"
	"github.com/espalier-project/espalier/internal/controller/node/reconciliationdelay"
	tokeninvalidation "github.com/espalier-project/espalier/internal/controller/tokeninvalidator"
	"github.com/espalier-project/espalier/internal/controller/tokenrequestor"
	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/executable/agents"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/managedresource/engine"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/rules"
	"github.com/espalier-project/espalier/internal/webhook/deletionprotection"
	"github.com/espalier-project/espalier/internal/webhook/endpointslicehints"
	"github.com/espalier-project/espalier/internal/webhook/extensionvalidation"
	"github.com/espalier-project/espalier/internal/webhook/highavailabilityconfig"
	"github.com/espalier-project/espalier/internal/webhook/kubernetesservicehost"
	"github.com/espalier-project/espalier/internal/webhook/podkubeapiserverloadbalancing"
	"github.com/espalier-project/espalier/internal/webhook/podschedulername"
	"github.com/espalier-project/espalier/internal/webhook/podtopologyspreadconstraints"
	"github.com/espalier-project/espalier/internal/webhook/podzoneaffinity"
	"github.com/espalier-project/espalier/internal/webhook/projectedtokenmount"
	"github.com/espalier-project/espalier/internal/webhook/seccompprofile"
	"github.com/espalier-project/espalier/internal/webhook/systemcomponentsconfig"
	"github.com/espalier-project/espalier/internal/webhook/tokeninvalidator"
	"github.com/espalier-project/espalier/internal/webhook/vpainplaceupdates"
)

// Row is a feature of resource-manager.
type Row = feature.Row[config.ResourceManagerConfiguration, *Process]

type configuration = config.ResourceManagerConfiguration

// Table returns all features, in the order in which they start.
func Table() []Row {
	return []Row{
		{
			Name: "managedresource", Runs: feature.Leader,
			Doc:   "Applies the objects of ManagedResources, keeps them so, and judges their health and progress.",
			Reads: engine.Reads, Writes: engine.Writes, Metrics: engine.Metrics,
			Start: func(ctx context.Context, p *Process) error { return p.Engine.Start(ctx) },
		},
		{
			Name: "leader-election", Runs: feature.EveryReplica,
			Doc:    "Elects the replica that runs the features of the leader.",
			Writes: electionWrites, Start: func(context.Context, *Process) error { return nil }, // The manager runs it.
		},
		{
			Name: "guard", Switch: feature.GuardSwitch, Runs: feature.EveryReplica,
			Doc:    "Asks the API server who may read metrics, profiles and debug pages.",
			Writes: func(*configuration) []feature.Write { return feature.GuardWrites(feature.Source) }, Start: func(context.Context, *Process) error { return nil }, // The manager serves it.
		},
		{
			Name: garbagecollector.Name, Switch: "controllers.garbageCollector.enabled", Runs: feature.Leader,
			Doc:   "Marks unreferenced ConfigMaps and Secrets, and deletes them later.",
			Reads: garbagecollector.Reads, Writes: garbagecollector.Writes, Start: startGarbageCollector,
			Metrics: collectorMetrics,
		},
		{
			Name: tokenrequestor.Name, Switch: "controllers.tokenRequestor.enabled", Runs: feature.Leader,
			Doc:   "Requests ServiceAccount tokens of the target and keeps them fresh in Secrets of the source.",
			Reads: tokenrequestor.Reads, Writes: tokenrequestor.Writes, Start: startTokenRequestor,
			Metrics: feature.Registers(tokenrequestor.NewMetrics),
		},
		{
			Name: tokeninvalidation.Name, Switch: "controllers.tokenInvalidator.enabled", Runs: feature.Leader,
			Doc:   "Invalidates static tokens of ServiceAccounts.",
			Reads: reads(tokeninvalidation.Reads), Writes: writes(tokeninvalidation.Writes), Start: startTokenInvalidator,
		},
		{
			Name: csrapprover.Name, Switch: "controllers.csrApprover.enabled", Runs: feature.Leader,
			Doc:   "Approves and denies the certificate requests of kubelets and node agents.",
			Reads: csrapprover.Reads, Writes: csrapprover.Writes, Start: startCSRApprover,
			Metrics: feature.Registers(csrapprover.NewMetrics),
		},
		{
			Name: networkpolicy.Name, Switch: "controllers.networkPolicy.enabled", Runs: feature.Leader,
			Doc:   "Derives NetworkPolicies from Services.",
			Reads: networkpolicy.Reads, Writes: networkpolicy.Writes, Start: startNetworkPolicies,
		},
		{
			Name: criticalcomponents.Name, Switch: "controllers.nodeCriticalComponents.enabled", Runs: feature.Leader,
			Doc:   "Takes the taint from Nodes whose critical components are ready.",
			Reads: reads(criticalcomponents.Reads), Writes: writes(criticalcomponents.Writes), Start: startCriticalComponents,
		},
		{
			Name: reconciliationdelay.Name, Switch: "controllers.nodeAgentReconciliationDelay.enabled", Runs: feature.Leader,
			Doc:   "Spreads the reconciliations of node agents.",
			Reads: reads(reconciliationdelay.Reads), Writes: writes(reconciliationdelay.Writes), Start: startReconciliationDelay,
		},
		{
			Name: highavailability.Name, Switch: "webhooks.highAvailabilityConfig.enabled", Runs: feature.Leader,
			Doc:   "Updates the spread of workloads over Nodes when the cluster gets a second Node, or has only one left.",
			Reads: reads(highavailability.Reads), Writes: writes(highavailability.Writes), Start: startHighAvailability,
		},
		{
			Name: istioclusterconfiguration.Name, Switch: "controllers.istioClusterConfiguration.enabled", Runs: feature.Leader,
			Doc:   "Limits the connections of Istio's ingress gateways.",
			Reads: istioclusterconfiguration.Reads, Writes: istioclusterconfiguration.Writes, Start: startIstioClusterConfiguration,
		},
		{
			Name: rules.Name, Switch: "webhooks.nodeAgentAuthorizer.enabled", Runs: feature.EveryReplica,
			Doc:  "Authorizes requests of node agents.",
			Path: rules.Path, Reads: nodeAgentReads, Metrics: agents.Metrics, Start: startNodeAgents,
		},
		// The mutating webhooks, in the order of their registration (DEP-2).
		hook(Row{
			Name: tokeninvalidator.Name, Switch: "webhooks.tokenInvalidator.enabled",
			Doc:  "Makes static tokens of ServiceAccounts useless, at admission.",
			Path: tokeninvalidator.Path, Mutating: one(tokeninvalidator.Registration),
		}, func(*Process) (admission.Func, error) { return tokeninvalidator.Decide(), nil }),
		hook(Row{
			Name: projectedtokenmount.Name, Switch: "webhooks.projectedTokenMount.enabled",
			Doc:   "Mounts tokens that expire into Pods whose ServiceAccount mounts none.",
			Reads: reads(projectedtokenmount.Reads),
			Path:  projectedtokenmount.Path, Mutating: one(projectedtokenmount.Registration),
		}, func(p *Process) (admission.Func, error) {
			return reading(p.Target, func(fresh *readthrough.Reader) admission.Func {
				return projectedtokenmount.Decide(fresh, *p.Config.Webhooks.ProjectedTokenMount.ExpirationSeconds)
			})
		}),
		hook(Row{
			Name: highavailabilityconfig.Name, Switch: "webhooks.highAvailabilityConfig.enabled",
			Doc:   "Spreads components over zones and Nodes, with the replicas that failures ask for.",
			Reads: highavailabilityconfig.Reads,
			Path:  highavailabilityconfig.Path, Mutating: one(highavailabilityconfig.Registration),
		}, func(p *Process) (admission.Func, error) {
			return reading(p.Target, func(fresh *readthrough.Reader) admission.Func {
				return highavailabilityconfig.Decide(&p.Config.Webhooks.HighAvailabilityConfig, fresh, p.Target.Cache)
			})
		}),
		hook(Row{
			Name: podschedulername.Name, Switch: "webhooks.podSchedulerName.enabled",
			Doc:  "Gives Pods of the default scheduler to another one.",
			Path: podschedulername.Path, Mutating: one(podschedulername.Registration),
		}, func(p *Process) (admission.Func, error) {
			return podschedulername.Decide(*p.Config.Webhooks.PodSchedulerName.SchedulerName), nil
		}),
		hook(Row{
			Name: seccompprofile.Name, Switch: "webhooks.seccompProfile.enabled",
			Doc:  "Gives Pods the seccomp profile of their container runtime.",
			Path: seccompprofile.Path, Mutating: one(seccompprofile.Registration),
		}, func(*Process) (admission.Func, error) { return seccompprofile.Decide(), nil }),
		hook(Row{
			Name: kubernetesservicehost.Name, Switch: "webhooks.kubernetesServiceHost.enabled",
			Doc:  "Tells the containers of Pods the host name of their API server.",
			Path: kubernetesservicehost.Path, Mutating: one(kubernetesservicehost.Registration),
		}, func(p *Process) (admission.Func, error) {
			return kubernetesservicehost.Decide(p.Config.Webhooks.KubernetesServiceHost.Host), nil
		}),
		hook(Row{
			Name: podkubeapiserverloadbalancing.Name, Switch: "webhooks.podKubeAPIServerLoadBalancing.enabled",
			Doc:   "Leads Pods of a control plane to their kube-apiserver through the ingress gateway.",
			Reads: reads(podkubeapiserverloadbalancing.Reads),
			Path:  podkubeapiserverloadbalancing.Path, Mutating: each(podkubeapiserverloadbalancing.Registrations),
		}, func(p *Process) (admission.Func, error) {
			return reading(p.Target, func(fresh *readthrough.Reader) admission.Func { return podkubeapiserverloadbalancing.Decide(fresh) })
		}),
		hook(Row{
			Name: systemcomponentsconfig.Name, Switch: "webhooks.systemComponentsConfig.enabled",
			Doc:   "Places Pods of system components on the Nodes that are meant for them.",
			Reads: reads(systemcomponentsconfig.Reads),
			Path:  systemcomponentsconfig.Path, Mutating: one(systemcomponentsconfig.Registration),
		}, func(p *Process) (admission.Func, error) {
			return systemcomponentsconfig.Decide(&p.Config.Webhooks.SystemComponentsConfig, p.Target.Cache), nil
		}),
		hook(Row{
			Name: endpointslicehints.Name, Switch: "webhooks.endpointSliceHints.enabled",
			Doc:  "Keeps traffic in its zone by hints in EndpointSlices, before Kubernetes 1.32.",
			Path: endpointslicehints.Path, Mutating: one(endpointslicehints.Registration),
		}, decideHints),
		hook(Row{
			Name: podtopologyspreadconstraints.Name, Switch: "webhooks.podTopologySpreadConstraints.enabled",
			Doc:  "Spreads each generation of a Deployment's Pods by itself.",
			Path: podtopologyspreadconstraints.Path, Mutating: one(podtopologyspreadconstraints.Registration),
		}, func(*Process) (admission.Func, error) { return podtopologyspreadconstraints.Decide(), nil }),
		hook(Row{
			Name: vpainplaceupdates.Name, Switch: "webhooks.vpaInPlaceUpdates.enabled",
			Doc:  "Lets vertical autoscalers change Pods in place, where they would evict them.",
			Path: vpainplaceupdates.Path, Mutating: one(vpainplaceupdates.Registration),
		}, func(*Process) (admission.Func, error) { return vpainplaceupdates.Decide(), nil }),
		hook(Row{
			Name: podzoneaffinity.Name, Switch: "webhooks.podZoneAffinity.enabled",
			Doc:   "Keeps the Pods of a namespace together in one zone.",
			Reads: reads(podzoneaffinity.Reads),
			Path:  podzoneaffinity.Path, Mutating: one(podzoneaffinity.Registration),
		}, func(p *Process) (admission.Func, error) {
			return reading(p.Source, func(fresh *readthrough.Reader) admission.Func { return podzoneaffinity.Decide(fresh) })
		}),
		// The validating webhooks.
		hook(Row{
			Name: deletionprotection.Name, Switch: "webhooks.crdDeletionProtection.enabled",
			Doc:   "Refuses the deletion of protected CRDs, extension resources and Etcds without a confirmation.",
			Reads: reads(deletionprotection.Reads),
			Path:  deletionprotection.Path, Validating: judging(deletionprotection.Registrations),
		}, decideProtection),
		validating(Row{
			Name: extensionvalidation.Name, Switch: "webhooks.extensionValidation.enabled",
			Doc:        "Judges extension resources and Etcds when they are written.",
			Validating: judging(extensionvalidation.Registrations),
		}),
	}
}
