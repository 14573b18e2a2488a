package main

import (
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/clusters"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/foreign/garden"
	"github.com/espalier-project/espalier/internal/serve"
	"github.com/espalier-project/espalier/internal/serve/admit"
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

// hook is a webhook of admission-controller beside its restrictions.
type hook struct {
	name, path string
	reads      []feature.Read
	decide     admit.Func
}

// hooks is the table of these webhooks (B0); all are always served. The live reader asks the garden, the cached one has what reads say.
func hooks(cfg *config.ServerConfiguration, live, cached client.Reader, rejections *admit.Rejections, log logr.Logger) ([]hook, error) {
	audit, err := auditpolicy.Decide(cached, live)
	if err != nil {
		return nil, err
	}
	labels := providersecretlabels.Options{Bindings: cached, RemoveUnreferenced: cfg.ProviderSecretLabels.RemoveUnreferenced}
	sizes := resourcesize.Options{Config: cfg.ResourceAdmissionConfiguration, Garden: live, Rejections: rejections, Log: log.WithName("webhook." + resourcesize.Name)}
	return []hook{
		{auditpolicy.Name, auditpolicy.Path, auditpolicy.Reads(), audit},
		{authenticationconfig.Name, authenticationconfig.Path, authenticationconfig.Reads(), authenticationconfig.Decide(cached, live)},
		{authorizationconfig.Name, authorizationconfig.Path, authorizationconfig.Reads(), authorizationconfig.Decide(cached, live)},
		{internaldomain.Name, internaldomain.Path, internaldomain.Reads(), internaldomain.Decide(live)},
		{kubeconfigsecret.Name, kubeconfigsecret.Path, nil, kubeconfigsecret.Decide(rejections)},
		{namespacedeletion.Name, namespacedeletion.Path, namespacedeletion.Reads(), namespacedeletion.Decide(live)},
		{providersecretlabels.Name, providersecretlabels.Path, providersecretlabels.Reads(), providersecretlabels.Decide(labels)},
		{resourcesize.Name, resourcesize.Path, nil, resourcesize.Decide(sizes)},
		{shootkubeconfigsecretref.Name, shootkubeconfigsecretref.Path, shootkubeconfigsecretref.Reads(), shootkubeconfigsecretref.Decide(cached)},
		{updaterestriction.Name, updaterestriction.Path, nil, updaterestriction.Decide()},
	}, nil
}

// serveWebhooks serves them on every replica. What they read from a cache is read from the first request for one of them on; requests wait
// for it a little, and are answered with 503 until the cache is complete. The readiness of the process does not wait for them: authorizers
// need none of it, and what the cache reads, which is as much as they do, comes after them.
func serveWebhooks(cfg *config.AdmissionControllerConfiguration, mgr manager.Manager, restConfig *rest.Config, authorizing func() bool, log logr.Logger) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, garden.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	// What is read does not depend on who reads it.
	table, err := hooks(&cfg.Server, nil, nil, nil, log)
	if err != nil {
		return err
	}
	connection := clusters.Connection{REST: restConfig, HTTP: mgr.GetHTTPClient()}
	cluster, err := connection.Caching(feature.Garden, clusters.Options{Scheme: scheme, Reads: once(table)})
	if err != nil {
		return fmt.Errorf("garden cluster: %w", err)
	}
	if table, err = hooks(&cfg.Server, cluster.Client, cluster.Cache, admit.NewRejections(metrics.Registry), log); err != nil {
		return err
	}
	first := &asked{clock: clock.RealClock{}}
	if err := mgr.Add(later{cluster, func() bool { return first.Asked() && authorizing() }, clock.RealClock{}}); err != nil {
		return err
	}
	shared := admit.Options{Bodies: serve.NewBodies(admit.CostlyAtOnce), Metrics: admit.NewMetrics(metrics.Registry)}
	for _, h := range table {
		kept, err := clusters.Keep(map[feature.Cluster]*clusters.Cluster{feature.Garden: cluster}, h.reads, clock.RealClock{}, log.WithName(h.name))
		if err != nil {
			return err
		}
		if err := mgr.Add(kept); err != nil {
			return err
		}
		options := shared
		options.Name, options.Decide, options.Log = h.name, h.decide, log.WithName("webhook."+h.name)
		if len(h.reads) > 0 {
			options.Ready = first.ready(kept.Synced)
		}
		mgr.GetWebhookServer().Register(h.path, admit.New(options))
	}
	return nil
}

// once returns what the table reads, each kind in each form once: all strip an object alike.
func once(table []hook) []feature.Read {
	type shape struct {
		kind schema.GroupVersionKind
		form feature.Form
	}
	var all []feature.Read
	seen := map[shape]bool{}
	for _, h := range table {
		for _, read := range h.reads {
			if key := (shape{read.Kind, read.Form}); !seen[key] {
				seen[key] = true
				all = append(all, read)
			}
		}
	}
	return all
}
