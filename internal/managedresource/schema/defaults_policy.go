package schema

const rbacGroup = "rbac.authorization.k8s.io"

var podGroup = fields{"disruptionMode": map[string]any{"single": map[string]any{}}}

var policyDefaults = map[string]fields{
	"networking.NetworkPolicyPort": {"protocol": "TCP"},
	"networking.NetworkPolicySpec": {"policyTypes": func(s scope) any {
		if nonEmptyList(s.sibling("egress")) {
			return []any{"Ingress", "Egress"}
		}
		return []any{"Ingress"}
	}},
	"networking.IngressClassParametersReference": {"scope": "Cluster"},

	"rbac.RoleRef": {"apiGroup": rbacGroup},
	"rbac.Subject": {"apiGroup": func(s scope) any {
		switch s.sibling("kind") {
		case "User", "Group":
			return rbacGroup
		}
		return nil
	}},

	"scheduling.PriorityClass":         {"preemptionPolicy": "PreemptLowerPriority"},
	"scheduling.PodGroupSpec":          podGroup,
	"scheduling.CompositePodGroupSpec": podGroup,

	"storage.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
	"storage.CSIDriverSpec": {
		"attachRequired": true, "podInfoOnMount": false, "storageCapacity": false, "requiresRepublish": false,
		"seLinuxMount":                  false,
		"preventPodSchedulingIfMissing": false, "fsGroupPolicy": "ReadWriteOnceWithFSType",
		"volumeLifecycleModes": []any{"Persistent"},
	},

	"flowcontrol.FlowSchemaSpec":                    {"matchingPrecedence": 1000},
	"flowcontrol.ExemptPriorityLevelConfiguration":  {"nominalConcurrencyShares": 0, "lendablePercent": 0},
	"flowcontrol.LimitedPriorityLevelConfiguration": {"nominalConcurrencyShares": 30, "lendablePercent": 0},
	"flowcontrol.QueuingConfiguration":              {"handSize": 8, "queues": 64, "queueLengthLimit": 50},
}
