package schema

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// apiService has the fields of the aggregator's APIService. The aggregator's module is not worth a dependency for
// these few fields; the property test against a real API server verifies them.
type apiService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   apiServiceSpec   `json:"spec,omitempty"`
	Status apiServiceStatus `json:"status,omitempty"`
}

type apiServiceSpec struct {
	Service               *apiServiceReference `json:"service,omitempty"`
	Group                 string               `json:"group,omitempty"`
	Version               string               `json:"version,omitempty"`
	InsecureSkipTLSVerify bool                 `json:"insecureSkipTLSVerify,omitempty"`
	CABundle              []byte               `json:"caBundle,omitempty"`
	GroupPriorityMinimum  int32                `json:"groupPriorityMinimum"`
	VersionPriority       int32                `json:"versionPriority"`
}

type apiServiceReference struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Port      *int32 `json:"port,omitempty"`
}

type apiServiceStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
