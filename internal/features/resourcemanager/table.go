package resourcemanager

import (
	"context"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/authorizer/nodeagent"
	"github.com/espalier-project/espalier/internal/controller/csrapprover"
	"github.com/espalier-project/espalier/internal/controller/tokenrequestor"
	"github.com/espalier-project/espalier/internal/engine"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/serve/admit"
	"github.com/espalier-project/espalier/internal/webhook/deletionprotection"
	"github.com/espalier-project/espalier/internal/webhook/extensionvalidation"
	"github.com/espalier-project/espalier/internal/webhook/seccompprofile"
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
			Reads: engine.Reads, Writes: engine.Writes, Start: func(ctx context.Context, p *Process) error { return p.Engine.Start(ctx) },
		},
		{
			Name: "leader-election", Runs: feature.EveryReplica,
			Doc:    "Elects the replica that does what only one may do.",
			Writes: electionWrites, Start: func(context.Context, *Process) error { return nil }, // It is part of the manager.
		},
		{Name: "garbage-collector", Switch: "controllers.garbageCollector.enabled", Runs: feature.Leader, Doc: "Deletes ConfigMaps and Secrets that nothing refers to any more."},
		{
			Name: tokenrequestor.Name, Switch: "controllers.tokenRequestor.enabled", Runs: feature.Leader,
			Doc:   "Requests ServiceAccount tokens of the target and keeps them fresh in Secrets of the source.",
			Reads: tokenrequestor.Reads, Writes: tokenrequestor.Writes, Start: startTokenRequestor,
		},
		{Name: "token-invalidator", Switch: "controllers.tokenInvalidator.enabled", Runs: feature.Leader, Doc: "Invalidates static tokens of ServiceAccounts."},
		{
			Name: csrapprover.Name, Switch: "controllers.csrApprover.enabled", Runs: feature.Leader,
			Doc:   "Approves and denies the certificate requests of kubelets and node agents.",
			Reads: csrapprover.Reads, Writes: csrapprover.Writes, Start: startCSRApprover,
		},
		{Name: "networkpolicy", Switch: "controllers.networkPolicy.enabled", Runs: feature.Leader, Doc: "Derives NetworkPolicies from Services."},
		{Name: "node-critical-components", Switch: "controllers.nodeCriticalComponents.enabled", Runs: feature.Leader, Doc: "Takes the taint from Nodes whose critical components are ready."},
		{Name: "node-agent-reconciliation-delay", Switch: "controllers.nodeAgentReconciliationDelay.enabled", Runs: feature.Leader, Doc: "Spreads the reconciliations of node agents."},
		{Name: "istio-cluster-configuration", Switch: "controllers.istioClusterConfiguration.enabled", Runs: feature.Leader, Doc: "Configures Istio for the cluster."},
		{
			Name: nodeagent.Name, Switch: "webhooks.nodeAgentAuthorizer.enabled", Runs: feature.EveryReplica,
			Doc:  "Decides what the agents of Nodes may do, as a webhook authorizer.",
			Path: nodeagent.Path, Reads: nodeAgentReads, Start: startNodeAgents,
		},
		{
			Name: seccompprofile.Name, Switch: "webhooks.seccompProfile.enabled", Runs: feature.EveryReplica,
			Doc:  "Gives Pods the seccomp profile of their container runtime.",
			Path: seccompprofile.Path, Mutating: one(seccompprofile.Registration),
			Start: hook(seccompprofile.Name, seccompprofile.Path, func(*Process) (admit.Func, error) { return seccompprofile.Decide(), nil }),
		},
		{
			Name: deletionprotection.Name, Switch: "webhooks.crdDeletionProtection.enabled", Runs: feature.EveryReplica,
			Doc:   "Refuses to delete protected CRDs, extension resources and Etcds unless somebody confirmed it.",
			Reads: reads(deletionprotection.Reads),
			Path:  deletionprotection.Path, Validating: same(deletionprotection.Registrations),
			Start: hook(deletionprotection.Name, deletionprotection.Path, func(p *Process) (admit.Func, error) { return deletionprotection.Decide(p.Source.Client), nil }),
		},
		{Name: "endpoint-slice-hints", Switch: "webhooks.endpointSliceHints.enabled", Runs: feature.EveryReplica, Doc: "Sets zone hints in EndpointSlices."},
		{
			Name: extensionvalidation.Name, Switch: "webhooks.extensionValidation.enabled", Runs: feature.EveryReplica,
			Doc:        "Judges extension resources and Etcds when they are written.",
			Validating: same(extensionvalidation.Registrations), Start: serveExtensionValidation,
		},
		{Name: "high-availability-config", Switch: "webhooks.highAvailabilityConfig.enabled", Runs: feature.EveryReplica, Doc: "Spreads components over zones and Nodes."},
		{Name: "kubernetes-service-host", Switch: "webhooks.kubernetesServiceHost.enabled", Runs: feature.EveryReplica, Doc: "Sets KUBERNETES_SERVICE_HOST in Pods."},
		{Name: "system-components-config", Switch: "webhooks.systemComponentsConfig.enabled", Runs: feature.EveryReplica, Doc: "Places system components on Nodes."},
		{Name: "pod-kube-apiserver-load-balancing", Switch: "webhooks.podKubeAPIServerLoadBalancing.enabled", Runs: feature.EveryReplica, Doc: "Sends Pods through the load balancer of the API server."},
		{Name: "pod-scheduler-name", Switch: "webhooks.podSchedulerName.enabled", Runs: feature.EveryReplica, Doc: "Sets the scheduler of Pods."},
		{Name: "pod-topology-spread-constraints", Switch: "webhooks.podTopologySpreadConstraints.enabled", Runs: feature.EveryReplica, Doc: "Adds the Pod template hash to topology spread constraints."},
		{Name: "pod-zone-affinity", Switch: "webhooks.podZoneAffinity.enabled", Runs: feature.EveryReplica, Doc: "Pins Pods to a zone."},
		{Name: "projected-token-mount", Switch: "webhooks.projectedTokenMount.enabled", Runs: feature.EveryReplica, Doc: "Mounts projected ServiceAccount tokens into Pods."},
		{Name: "token-invalidator", Switch: "webhooks.tokenInvalidator.enabled", Runs: feature.EveryReplica, Doc: "Invalidates static ServiceAccount tokens at admission."},
		{Name: "vpa-in-place-updates", Switch: "webhooks.vpaInPlaceUpdates.enabled", Runs: feature.EveryReplica, Doc: "Sets the update mode of VerticalPodAutoscalers."},
	}
}
