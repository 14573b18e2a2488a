// Package v1alpha1 has the fields of druid.gardener.cloud/v1alpha1 that admission checks.
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of these types.
var GroupVersion = schema.GroupVersion{Group: "druid.gardener.cloud", Version: "v1alpha1"}

// Etcd is an etcd cluster.
type Etcd struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              EtcdSpec `json:"spec"`
}

// EtcdSpec is the specification of an Etcd.
type EtcdSpec struct {
	MemberNamePrefix *string    `json:"memberNamePrefix"`
	Backup           BackupSpec `json:"backup"`
}

// BackupSpec configures backups.
type BackupSpec struct {
	Store *StoreSpec `json:"store"`
}

// StoreSpec is the place of backups.
type StoreSpec struct {
	Prefix   string  `json:"prefix"`
	Provider *string `json:"provider"`
}
