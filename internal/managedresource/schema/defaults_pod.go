package schema

import "strings"

var (
	ordinaryContainer = fields{
		"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
		"imagePullPolicy": func(s scope) any { return pullPolicy(s.sibling("image")) },
	}
	azureDisk = fields{"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": false, "kind": "Shared"}
	rbd       = fields{"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}
	scaleIO   = fields{"storageMode": "ThinProvisioned", "fsType": "xfs"}
	iscsi     = fields{"iscsiInterface": "default"}
)

// fileMode is 0644 in decimal, as in JSON.
const fileMode = 420

// podDefaults are the defaults of every Pod template. It has no defaults for Pods alone, because merging takes the
// fields that a Pod's manifest omits from the live Pod.
var podDefaults = map[string]fields{
	"core.PodSpec": {
		"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
		"terminationGracePeriodSeconds": 30, "securityContext": map[string]any{},
		// Both fields have the same meaning; the newer one takes precedence.
		"serviceAccountName": func(s scope) any { return s.sibling("serviceAccount") },
		"serviceAccount": &fill{always: func(s scope, given any) any {
			if name := text(s.sibling("serviceAccountName")); name != "" {
				return name
			}
			return given
		}},
	},
	"core.Container":                ordinaryContainer,
	"core.EphemeralContainerCommon": ordinaryContainer,
	"core.ContainerPort":            {"protocol": "TCP"},
	"core.Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1,
		"failureThreshold": 3},
	"core.HTTPGetAction":       {"path": "/", "scheme": "HTTP"},
	"core.GRPCAction":          {"service": ""},
	"core.ObjectFieldSelector": {"apiVersion": "v1"},
	"core.FileKeySelector":     {"optional": false},
	"core.VolumeSource": {"emptyDir": func(s scope) any {
		for name, source := range s.up(0) {
			if name != "name" && source != nil {
				return nil
			}
		}
		return map[string]any{}
	}},
	"core.SecretVolumeSource":            {"defaultMode": fileMode},
	"core.ConfigMapVolumeSource":         {"defaultMode": fileMode},
	"core.DownwardAPIVolumeSource":       {"defaultMode": fileMode},
	"core.ProjectedVolumeSource":         {"defaultMode": fileMode},
	"core.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
	"core.HostPathVolumeSource":          {"type": ""},
	"core.ImageVolumeSource":             {"pullPolicy": func(s scope) any { return pullPolicy(s.sibling("reference")) }},
	"core.AzureDiskVolumeSource":         azureDisk,
	"core.RBDVolumeSource":               rbd,
	"core.RBDPersistentVolumeSource":     rbd,
	"core.ScaleIOVolumeSource":           scaleIO,
	"core.ScaleIOPersistentVolumeSource": scaleIO,
	"core.ISCSIVolumeSource":             iscsi,
	"core.ISCSIPersistentVolumeSource":   iscsi,
}

// pullPolicy returns Always for the tag latest, which is also the default tag of an image without tag and digest.
func pullPolicy(image any) any {
	name := text(image)
	name = name[strings.LastIndex(name, "/")+1:]
	if name == "" {
		return "IfNotPresent"
	}
	name, digest, pinned := strings.Cut(name, "@")
	_, tag, tagged := strings.Cut(name, ":")
	if tagged && tag == "latest" || !tagged && (!pinned || digest == "") {
		return "Always"
	}
	return "IfNotPresent"
}
