package plan

import "strings"

// kindOrder is the order in which kinds are applied (MR-23); kinds that are not listed are last.
var kindOrder = func() map[string]int {
	ranks := map[string]int{}
	for rank, kind := range []string{
		"PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy",
		"PodDisruptionBudget", "ServiceAccount", "Secret", "SecretList", "ConfigMap", "StorageClass", "PersistentVolume",
		"PersistentVolumeClaim", "CustomResourceDefinition", "ClusterRole", "ClusterRoleList", "ClusterRoleBinding",
		"ClusterRoleBindingList", "Role", "RoleList", "RoleBinding", "RoleBindingList", "Service", "DaemonSet", "Pod",
		"ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob",
		"IngressClass", "Ingress", "APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
	} {
		ranks[kind] = rank
	}
	return ranks
}()

// Compare orders kinds and names as they are applied: listed kinds by rank, others by kind, then by name (MR-22).
func Compare(kindA, nameA, kindB, nameB string) int {
	rankA, listedA := kindOrder[kindA]
	rankB, listedB := kindOrder[kindB]
	if !listedA {
		rankA = len(kindOrder)
	}
	if !listedB {
		rankB = len(kindOrder)
	}
	if rankA != rankB {
		return rankA - rankB
	}
	if c := strings.Compare(kindA, kindB); c != 0 {
		return c
	}
	return strings.Compare(nameA, nameB)
}

// Tiers splits a sorted list into groups of one kind, whose objects are applied concurrently.
func Tiers[T any](sorted []T, kind func(T) string) [][]T {
	var tiers [][]T
	for start := 0; start < len(sorted); {
		end := start + 1
		for end < len(sorted) && kind(sorted[end]) == kind(sorted[start]) {
			end++
		}
		tiers = append(tiers, sorted[start:end])
		start = end
	}
	return tiers
}
