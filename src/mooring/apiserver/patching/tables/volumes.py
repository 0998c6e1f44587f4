"""The fields of volumes of pods (core/v1)."""

from __future__ import annotations

VOLUMES = """\
AWSElasticBlockStoreVolumeSource
  string: fsType volumeID
  number: partition
  bool: readOnly
AzureDiskVolumeSource
  string: cachingMode diskName diskURI fsType kind
  bool: readOnly
AzureFileVolumeSource
  string: secretName shareName
  bool: readOnly
CSIVolumeSource
  string: driver fsType
  bool: readOnly
  {string}: volumeAttributes
  nodePublishSecretRef LocalObjectReference
CephFSVolumeSource
  string: path secretFile user
  bool: readOnly
  [string]: monitors
  secretRef LocalObjectReference
CinderVolumeSource
  string: fsType volumeID
  bool: readOnly
  secretRef LocalObjectReference
ClusterTrustBundleProjection
  string: name path signerName
  number: user
  bool: optional
  labelSelector LabelSelector
ConfigMapProjection
  string: name
  bool: optional
  items [KeyToPath]
ConfigMapVolumeSource
  string: name
  number: defaultMode defaultUser
  bool: optional
  items [KeyToPath]
DownwardAPIProjection
  items [DownwardAPIVolumeFile]
DownwardAPIVolumeFile
  string: path
  number: mode user
  fieldRef ObjectFieldSelector
  resourceFieldRef ResourceFieldSelector
DownwardAPIVolumeSource
  number: defaultMode defaultUser
  items [DownwardAPIVolumeFile]
EmptyDirVolumeSource
  string: medium
  number: mode
  any: sizeLimit
EphemeralVolumeSource
  volumeClaimTemplate PersistentVolumeClaimTemplate
FCVolumeSource
  string: fsType
  number: lun
  bool: readOnly
  [string]: targetWWNs wwids
FlexVolumeSource
  string: driver fsType
  bool: readOnly
  {string}: options
  secretRef LocalObjectReference
FlockerVolumeSource
  string: datasetName datasetUUID
GCEPersistentDiskVolumeSource
  string: fsType pdName
  number: partition
  bool: readOnly
GitRepoVolumeSource
  string: directory repository revision
GlusterfsVolumeSource
  string: endpoints path
  bool: readOnly
HostPathVolumeSource
  string: path type
ISCSIVolumeSource
  string: fsType initiatorName iqn iscsiInterface targetPortal
  number: lun
  bool: chapAuthDiscovery chapAuthSession readOnly
  [string]: portals
  secretRef LocalObjectReference
ImageVolumeSource
  string: pullPolicy reference
KeyToPath
  string: key path
  number: mode user
LocalObjectReference atomic
  string: name
NFSVolumeSource
  string: path server
  bool: readOnly
ObjectFieldSelector atomic
  string: apiVersion fieldPath
PersistentVolumeClaimSpec
  string: storageClassName volumeAttributesClassName volumeMode volumeName
  [string]: accessModes
  dataSource TypedLocalObjectReference
  dataSourceRef TypedObjectReference
  resources VolumeResourceRequirements
  selector LabelSelector
PersistentVolumeClaimTemplate
  metadata ObjectMeta
  spec PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource
  string: claimName
  bool: readOnly
PhotonPersistentDiskVolumeSource
  string: fsType pdID
PodCertificateProjection
  string: certificateChainPath credentialBundlePath keyPath keyType signerName
  number: maxExpirationSeconds user
  {string}: userAnnotations
PortworxVolumeSource
  string: fsType volumeID
  bool: readOnly
ProjectedVolumeSource
  number: defaultMode defaultUser
  sources [VolumeProjection]
QuobyteVolumeSource
  string: group registry tenant user volume
  bool: readOnly
RBDVolumeSource
  string: fsType image keyring pool user
  bool: readOnly
  [string]: monitors
  secretRef LocalObjectReference
ResourceFieldSelector atomic
  string: containerName resource
  any: divisor
ScaleIOVolumeSource
  string: fsType gateway protectionDomain storageMode storagePool system volumeName
  bool: readOnly sslEnabled
  secretRef LocalObjectReference
SecretProjection
  string: name
  bool: optional
  items [KeyToPath]
SecretVolumeSource
  string: secretName
  number: defaultMode defaultUser
  bool: optional
  items [KeyToPath]
ServiceAccountTokenProjection
  string: audience path
  number: expirationSeconds user
StorageOSVolumeSource
  string: fsType volumeName volumeNamespace
  bool: readOnly
  secretRef LocalObjectReference
TypedLocalObjectReference atomic
  string: apiGroup kind name
TypedObjectReference
  string: apiGroup kind name namespace
Volume
  string: name
  awsElasticBlockStore AWSElasticBlockStoreVolumeSource
  azureDisk AzureDiskVolumeSource
  azureFile AzureFileVolumeSource
  cephfs CephFSVolumeSource
  cinder CinderVolumeSource
  configMap ConfigMapVolumeSource
  csi CSIVolumeSource
  downwardAPI DownwardAPIVolumeSource
  emptyDir EmptyDirVolumeSource
  ephemeral EphemeralVolumeSource
  fc FCVolumeSource
  flexVolume FlexVolumeSource
  flocker FlockerVolumeSource
  gcePersistentDisk GCEPersistentDiskVolumeSource
  gitRepo GitRepoVolumeSource
  glusterfs GlusterfsVolumeSource
  hostPath HostPathVolumeSource
  image ImageVolumeSource
  iscsi ISCSIVolumeSource
  nfs NFSVolumeSource
  persistentVolumeClaim PersistentVolumeClaimVolumeSource
  photonPersistentDisk PhotonPersistentDiskVolumeSource
  portworxVolume PortworxVolumeSource
  projected ProjectedVolumeSource
  quobyte QuobyteVolumeSource
  rbd RBDVolumeSource
  scaleIO ScaleIOVolumeSource
  secret SecretVolumeSource
  storageos StorageOSVolumeSource
  vsphereVolume VsphereVirtualDiskVolumeSource
VolumeProjection
  clusterTrustBundle ClusterTrustBundleProjection
  configMap ConfigMapProjection
  downwardAPI DownwardAPIProjection
  podCertificate PodCertificateProjection
  secret SecretProjection
  serviceAccountToken ServiceAccountTokenProjection
VolumeResourceRequirements
  {any}: limits requests
VsphereVirtualDiskVolumeSource
  string: fsType storagePolicyID storagePolicyName volumePath
"""
