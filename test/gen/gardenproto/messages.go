package gardenproto

// messages are those of gardener-apiserver v1.150, as far as tests send them, one a line: its name, and each field with its number. A field is a text
// unless a type follows its number: int (which a truth value is, too), map (of texts), ObjectMeta, Time, Raw (a RawExtension), IntOrString, or another
// message. Lists are sent as often as they have elements. Each secretRef is from an older version; its number is reserved since.
const messages = `
BackupBucket metadata=1:ObjectMeta spec=2:BackupBucketSpec status=3:BackupBucketStatus
BackupBucketSpec provider=1:BackupBucketProvider providerConfig=2:Raw secretRef=3:SecretReference seedName=4 credentialsRef=5:ObjectReference shootRef=6:ObjectReference
BackupBucketProvider type=1 region=2
BackupBucketStatus providerStatus=1:Raw lastOperation=2:LastOperation observedGeneration=4:int generatedSecretRef=5:SecretReference
BackupEntry metadata=1:ObjectMeta spec=2:BackupEntrySpec status=3:BackupEntryStatus
BackupEntrySpec bucketName=1 seedName=2 shootRef=3:ObjectReference
BackupEntryStatus lastOperation=1:LastOperation observedGeneration=3:int seedName=4 migrationStartTime=5:Time
Bastion metadata=1:ObjectMeta spec=2:BastionSpec
BastionSpec shootRef=1:LocalObjectReference seedName=2 providerType=3 sshPublicKey=4
ControllerDeployment metadata=1:ObjectMeta helm=2:HelmControllerDeployment injectGardenKubeconfig=3:int resources=4:NamedResourceReference
HelmControllerDeployment ociRepository=3:OCIRepository
OCIRepository ref=1 repository=2 tag=3 digest=4 pullSecretRef=5:LocalObjectReference caBundleSecretRef=6:LocalObjectReference
ControllerInstallation metadata=1:ObjectMeta spec=2:ControllerInstallationSpec
ControllerInstallationSpec registrationRef=1:ObjectReference seedRef=2:ObjectReference deploymentRef=3:ObjectReference shootRef=4:ObjectReference
CredentialsBinding metadata=1:ObjectMeta provider=2:CredentialsBindingProvider credentialsRef=3:ObjectReference quotas=4:ObjectReference
CredentialsBindingProvider type=1
Gardenlet metadata=1:ObjectMeta spec=2:GardenletSpec
GardenletSpec deployment=1:GardenletSelfDeployment config=2:Raw kubeconfigSecretRef=3:LocalObjectReference
GardenletSelfDeployment helm=2:GardenletHelm imageVectorOverwrite=3
GardenletHelm ociRepository=1:OCIRepository
ManagedSeed metadata=1:ObjectMeta spec=2:ManagedSeedSpec
ManagedSeedSpec shoot=1:LocalObjectReference gardenlet=3:GardenletConfig
GardenletConfig config=2:Raw bootstrap=3 mergeWithParent=4:int
Project metadata=1:ObjectMeta spec=2:ProjectSpec
ProjectSpec description=2 purpose=4 namespace=6
SecretBinding metadata=1:ObjectMeta secretRef=2:SecretReference quotas=3:ObjectReference provider=4:CredentialsBindingProvider
Seed metadata=1:ObjectMeta spec=2:SeedSpec status=3:SeedStatus
SeedSpec backup=1:Backup dns=2:SeedDNS networks=3:SeedNetworks provider=4:SeedProvider secretRef=5:SecretReference resources=12:NamedResourceReference
Backup provider=1 providerConfig=2:Raw region=3 secretRef=4:SecretReference credentialsRef=5:ObjectReference
SeedDNS provider=2:SeedDNSProvider internal=3:SeedDNSProviderConfig defaults=4:SeedDNSProviderConfig
SeedDNSProvider type=1 secretRef=2:SecretReference credentialsRef=5:ObjectReference
SeedDNSProviderConfig type=1 domain=2 zone=3 credentialsRef=4:ObjectReference
SeedNetworks nodes=1 pods=2 services=3
SeedProvider type=1 providerConfig=2:Raw region=3 zones=4
SeedStatus kubernetesVersion=2 observedGeneration=4:int clusterIdentity=5 clientCertificateExpirationTimestamp=8:Time lastOperation=9:LastOperation
Shoot metadata=1:ObjectMeta spec=2:ShootSpec status=3:ShootStatus
ShootSpec cloudProfileName=2 dns=3:DNS hibernation=5:Hibernation kubernetes=6:Kubernetes networking=7:Networking maintenance=8:Maintenance provider=10:Provider purpose=11 region=12 secretBindingName=13 seedName=14 resources=16:NamedResourceReference exposureClassName=18 schedulerName=21 cloudProfile=22:CloudProfileReference credentialsBindingName=23
DNS domain=1 providers=2:DNSProvider
DNSProvider primary=2:int secretName=3 type=4 credentialsRef=6:CrossVersionObjectReference
Hibernation enabled=1:int schedules=2:HibernationSchedule
HibernationSchedule start=1 end=2 location=3
Kubernetes kubeAPIServer=3:KubeAPIServerConfig kubeControllerManager=4:KubeControllerManagerConfig kubeProxy=6:KubeProxyConfig kubelet=7:KubeletConfig version=8
KubeAPIServerConfig admissionPlugins=2:AdmissionPlugin auditConfig=4:AuditConfig serviceAccountConfig=8:ServiceAccountConfig requests=10:APIServerRequests enableAnonymousAuthentication=11:int structuredAuthentication=17:StructuredAuthentication structuredAuthorization=18:StructuredAuthorization
AdmissionPlugin name=1 config=2:Raw disabled=3:int kubeconfigSecretName=4
ServiceAccountConfig issuer=1 extendTokenExpiration=3:int acceptedIssuers=5
AuditConfig auditPolicy=1:AuditPolicy
AuditPolicy configMapRef=1:ObjectReference
APIServerRequests maxNonMutatingInflight=1:int maxMutatingInflight=2:int
StructuredAuthentication configMapName=1
StructuredAuthorization configMapName=1 kubeconfigs=2:AuthorizerKubeconfigReference
AuthorizerKubeconfigReference authorizerName=1 secretName=2
KubeControllerManagerConfig nodeCIDRMaskSize=3:int
KubeProxyConfig mode=2 enabled=3:int
KubeletConfig failSwapOn=13:int
Networking type=1 providerConfig=2:Raw pods=3 nodes=4 services=5 ipFamilies=6
Maintenance autoUpdate=1:MaintenanceAutoUpdate timeWindow=2:MaintenanceTimeWindow
MaintenanceAutoUpdate kubernetesVersion=1:int machineImageVersion=2:int
MaintenanceTimeWindow begin=1 end=2
Provider type=1 controlPlaneConfig=2:Raw infrastructureConfig=3:Raw workers=4:Worker
Worker annotations=1:map caBundle=2 cri=3:CRI labels=5:map name=6 machine=7:Machine maximum=8:int minimum=9:int maxSurge=10:IntOrString maxUnavailable=11:IntOrString volume=14:Volume zones=17 systemComponents=18:WorkerSystemComponents controlPlane=24:WorkerControlPlane
CRI name=1
Machine type=1 image=2:ShootMachineImage architecture=3
ShootMachineImage name=1 providerConfig=2:Raw version=3
Volume name=1 type=2 size=3
WorkerSystemComponents allow=1:int
WorkerControlPlane backup=1:Backup
CloudProfileReference kind=1 name=2
ShootStatus conditions=1:Condition constraints=2:Condition hibernated=4:int lastOperation=5:LastOperation observedGeneration=7:int retryCycleStartTime=8:Time seedName=9 technicalID=10 uid=11 clusterIdentity=12 advertisedAddresses=13:ShootAdvertisedAddress
ShootAdvertisedAddress name=1 url=2
Condition type=1 status=2 lastTransitionTime=3:Time lastUpdateTime=4:Time reason=5 message=6
LastOperation description=1 lastUpdateTime=2:Time progress=3:int state=4 type=5
NamedResourceReference name=1 resourceRef=2:CrossVersionObjectReference
ObjectReference kind=1 namespace=2 name=3 uid=4 apiVersion=5 resourceVersion=6
CrossVersionObjectReference kind=1 name=2 apiVersion=3
LocalObjectReference name=1
SecretReference name=1 namespace=2
`
