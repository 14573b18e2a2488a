package schema

import "math"

var workloadDefaults = map[string]fields{
	"apps.DeploymentSpec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
	"apps.DeploymentStrategy": {
		"type": "RollingUpdate", "rollingUpdate": whenRolling,
	},
	"apps.RollingUpdateDeployment": {"maxUnavailable": "25%", "maxSurge": "25%"},
	"apps.DaemonSetSpec":           {"revisionHistoryLimit": 10},
	"apps.DaemonSetUpdateStrategy": {
		"type": "RollingUpdate", "rollingUpdate": whenRolling,
	},
	"apps.RollingUpdateDaemonSet": {"maxUnavailable": 1, "maxSurge": 0},
	"apps.StatefulSetSpec": {
		"replicas": 1, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady",
		"persistentVolumeClaimRetentionPolicy": map[string]any{},
	},
	"apps.StatefulSetPersistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
	"apps.StatefulSetUpdateStrategy": {
		"type": "RollingUpdate",
		"rollingUpdate": func(s scope) any {
			if text(s.sibling("type")) != "" { // An explicit type gets no default, not even RollingUpdate.
				return nil
			}
			return map[string]any{}
		},
	},
	"apps.RollingUpdateStatefulSetStrategy": {"partition": 0, "maxUnavailable": 1},
	"apps.ReplicaSetSpec":                   {"replicas": 1},

	"batch.JobSpec": { // The API server sets these in Jobs only, not in the templates of CronJobs.
		"parallelism": inJob(func(scope) any { return int64(1) }),
		"completions": inJob(func(s scope) any {
			if s.sibling("parallelism") != nil {
				return nil
			}
			return int64(1)
		}),
		"backoffLimit": inJob(func(s scope) any {
			if s.sibling("backoffLimitPerIndex") != nil {
				return int64(math.MaxInt32)
			}
			return int64(6)
		}),
		"podReplacementPolicy": inJob(func(s scope) any {
			if s.sibling("podFailurePolicy") != nil {
				return "Failed"
			}
			return "TerminatingOrFailed"
		}),
		"completionMode": inJob(func(scope) any { return "NonIndexed" }),
		"suspend":        inJob(func(scope) any { return false }),
		"manualSelector": inJob(func(scope) any { return false }),
	},
	"batch.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
	"batch.CronJobSpec": {"concurrencyPolicy": "Allow", "suspend": false,
		"successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1},

	"autoscaling.HorizontalPodAutoscalerSpec": {
		"minReplicas": 1,
		"metrics": []any{map[string]any{"type": "Resource", "resource": map[string]any{
			"name": "cpu", "target": map[string]any{"type": "Utilization", "averageUtilization": int64(80)},
		}}},
		// Version 1 has other metrics in an annotation.
		"targetCPUUtilizationPercentage": func(s scope) any {
			annotations := mapping(mapping(s[0]["metadata"])["annotations"])
			if _, found := annotations["autoscaling.alpha.kubernetes.io/metrics"]; found {
				return nil
			}
			return int64(80)
		},
	},
	"autoscaling.HorizontalPodAutoscalerBehavior": {
		"scaleUp": &fill{always: func(_ scope, given any) any {
			return scalingRules(given, map[string]any{"stabilizationWindowSeconds": int64(0), "selectPolicy": "Max",
				"policies": []any{
					map[string]any{"type": "Pods", "value": int64(4), "periodSeconds": int64(15)},
					map[string]any{"type": "Percent", "value": int64(100), "periodSeconds": int64(15)},
				}})
		}},
		"scaleDown": &fill{always: func(_ scope, given any) any {
			return scalingRules(given, map[string]any{"selectPolicy": "Max", "policies": []any{
				map[string]any{"type": "Percent", "value": int64(100), "periodSeconds": int64(15)},
			}})
		}},
	},
}

func whenRolling(s scope) any {
	if kind := text(s.sibling("type")); kind != "" && kind != "RollingUpdate" {
		return nil
	}
	return map[string]any{}
}

func inJob(compute func(scope) any) func(scope) any {
	return func(s scope) any {
		if !s.inKind("Job") {
			return nil
		}
		return compute(s)
	}
}

// scalingRules returns the usual rules, overwritten by the given ones.
func scalingRules(given any, usual map[string]any) any {
	for name, value := range mapping(given) {
		if value != nil {
			usual[name] = value
		}
	}
	return usual
}
