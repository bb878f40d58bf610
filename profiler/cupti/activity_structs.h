#pragma once
// Which of CUPTI's structs a kind of record has. CUPTI keeps the kinds and gives a struct that
// grows a new name, so this is the one place that changes with its version. That the library at
// hand writes records at least this long is looked at when a decoder is made
// (profiler/cupti/activity_decoder.h).
//
// Thread contract: types and constants only.

#include <cupti.h>

namespace sluice::cupti {

#if CUPTI_API_VERSION >= 130000
using KernelActivity = CUpti_ActivityKernel10;
using MemcpyActivity = CUpti_ActivityMemcpy6;
using PeerMemcpyActivity = CUpti_ActivityMemcpyPtoP4;
using MemsetActivity = CUpti_ActivityMemset4;
using AllocationActivity = CUpti_ActivityMemory;
using MemoryActivity = CUpti_ActivityMemory4;
using OverheadActivity = CUpti_ActivityOverhead3;
using ExternalCorrelationActivity = CUpti_ActivityExternalCorrelation;
using SynchronizationActivity = CUpti_ActivitySynchronization2;
using ApiActivity = CUpti_ActivityAPI;
#else
#error "CUPTI of CUDA 13.0 is the oldest whose records are known here"
#endif

// CUSTOM0 and CUSTOM1 are anybody's (PyTorch's profiler pushes its own), so ids of ours carry a
// mark in the upper half.
inline constexpr CUpti_ExternalCorrelationKind kLayerCorrelation =
    CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
inline constexpr CUpti_ExternalCorrelationKind kStepCorrelation =
    CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1;
inline constexpr unsigned long long kExternalIdMark = 0x51ce'0000'0000'0000ull;
inline constexpr unsigned long long kExternalIdMarkMask = 0xffff'ffff'0000'0000ull;

}  // namespace sluice::cupti
