-- Tables, columns and numbers as Nsight Systems exports them; of its many tables those that a run
-- fills. What a run does not know (registers, grid sizes) is NULL or 0 as there.

CREATE TABLE StringIds (
  id INTEGER NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
);

CREATE TABLE META_DATA_EXPORT (
  name TEXT NOT NULL,
  value TEXT
);

CREATE TABLE META_DATA_CAPTURE (
  name TEXT NOT NULL,
  value TEXT
);

CREATE TABLE ThreadNames (
  nameId INTEGER NOT NULL,
  priority INTEGER,
  globalTid INTEGER
);

CREATE TABLE TARGET_INFO_GPU (
  vmId INTEGER NOT NULL,
  id INTEGER NOT NULL,
  name TEXT,
  busLocation TEXT,
  isDiscrete INTEGER,
  l2CacheSize INTEGER,
  totalMemory INTEGER,
  memoryBandwidth INTEGER,
  clockRate INTEGER,
  smCount INTEGER,
  uuid TEXT,
  chipName TEXT
);

CREATE TABLE TARGET_INFO_CUDA_DEVICE (
  gpuId INTEGER,
  cudaId INTEGER NOT NULL,
  pid INTEGER NOT NULL,
  uuid TEXT,
  numMultiprocessors INTEGER
);

-- What the real time was at time 0 of this file.
CREATE TABLE TARGET_INFO_SESSION_START_TIME (
  utcEpochNs INTEGER,
  utcTime TEXT,
  localTime TEXT
);

CREATE TABLE ANALYSIS_DETAILS (
  globalVid INTEGER NOT NULL,
  duration INTEGER NOT NULL,
  startTime INTEGER NOT NULL,
  stopTime INTEGER NOT NULL
);

CREATE TABLE NVTX_EVENTS (
  start INTEGER NOT NULL,
  "end" INTEGER,
  eventType INTEGER NOT NULL,
  rangeId INTEGER,
  category INTEGER,
  color INTEGER,
  text TEXT,
  globalTid INTEGER,
  endGlobalTid INTEGER,
  textId INTEGER,
  domainId INTEGER,
  uint64Value INTEGER,
  int64Value INTEGER,
  doubleValue REAL,
  uint32Value INTEGER,
  int32Value INTEGER,
  floatValue REAL,
  jsonTextId INTEGER,
  jsonText TEXT
);

CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (
  start INTEGER NOT NULL,
  "end" INTEGER NOT NULL,
  eventClass INTEGER,
  globalTid INTEGER,
  correlationId INTEGER,
  nameId INTEGER NOT NULL,
  returnValue INTEGER,
  callchainId INTEGER
);

CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
  start INTEGER NOT NULL,
  "end" INTEGER NOT NULL,
  deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL,
  streamId INTEGER NOT NULL,
  correlationId INTEGER,
  globalPid INTEGER,
  demangledName INTEGER NOT NULL,
  shortName INTEGER NOT NULL,
  mangledName INTEGER,
  launchType INTEGER,
  cacheConfig INTEGER,
  registersPerThread INTEGER NOT NULL DEFAULT 0,
  gridX INTEGER NOT NULL DEFAULT 0,
  gridY INTEGER NOT NULL DEFAULT 0,
  gridZ INTEGER NOT NULL DEFAULT 0,
  blockX INTEGER NOT NULL DEFAULT 0,
  blockY INTEGER NOT NULL DEFAULT 0,
  blockZ INTEGER NOT NULL DEFAULT 0,
  staticSharedMemory INTEGER NOT NULL DEFAULT 0,
  dynamicSharedMemory INTEGER NOT NULL DEFAULT 0,
  localMemoryPerThread INTEGER NOT NULL DEFAULT 0,
  localMemoryTotal INTEGER NOT NULL DEFAULT 0,
  gridId INTEGER NOT NULL DEFAULT 0,
  sharedMemoryExecuted INTEGER,
  graphNodeId INTEGER,
  sharedMemoryLimitConfig INTEGER
);

CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (
  start INTEGER NOT NULL,
  "end" INTEGER NOT NULL,
  deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL,
  streamId INTEGER NOT NULL,
  correlationId INTEGER,
  globalPid INTEGER,
  bytes INTEGER NOT NULL,
  copyKind INTEGER NOT NULL,
  deprecatedSrcId INTEGER,
  srcKind INTEGER,
  dstKind INTEGER,
  srcDeviceId INTEGER,
  srcContextId INTEGER,
  dstDeviceId INTEGER,
  dstContextId INTEGER,
  migrationCause INTEGER,
  graphNodeId INTEGER,
  virtualAddress INTEGER
);

CREATE TABLE ENUM_NSYS_EVENT_TYPE (
  id INTEGER NOT NULL PRIMARY KEY,
  name TEXT,
  label TEXT
);
INSERT INTO ENUM_NSYS_EVENT_TYPE (id, name, label) VALUES
  (34, 'NvtxMark', 'NVTX mark'),
  (59, 'NvtxPushPopRange', 'NVTX push/pop range'),
  (60, 'NvtxStartEndRange', 'NVTX start/end range'),
  (75, 'NvtxDomainCreate', 'NVTX domain create');

CREATE TABLE ENUM_CUDA_MEMCPY_OPER (
  id INTEGER NOT NULL PRIMARY KEY,
  name TEXT,
  label TEXT
);
INSERT INTO ENUM_CUDA_MEMCPY_OPER (id, name, label) VALUES
  (0, 'CUDA_MEMCPY_KIND_UNKNOWN', 'Unknown'),
  (1, 'CUDA_MEMCPY_KIND_HTOD', 'Host-to-Device'),
  (2, 'CUDA_MEMCPY_KIND_DTOH', 'Device-to-Host'),
  (8, 'CUDA_MEMCPY_KIND_DTOD', 'Device-to-Device'),
  (9, 'CUDA_MEMCPY_KIND_HTOH', 'Host-to-Host'),
  (10, 'CUDA_MEMCPY_KIND_PTOP', 'Peer-to-Peer');
