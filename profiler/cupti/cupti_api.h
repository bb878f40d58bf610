#pragma once
// The calls of CUPTI that are used, as pointers: the real ones come out of libcupti at run time, so
// that a program that never records a GPU starts on a machine without it; tests put their own here.
//
// Thread contract: load() from any thread; what it returns is never changed and never goes.

#include <cupti.h>

#include <string>

#include "base/status.h"

namespace sluice::cupti {

struct CuptiApi {
  decltype(&::cuptiGetVersion) version = nullptr;
  decltype(&::cuptiGetTimestamp) timestamp = nullptr;
  decltype(&::cuptiActivitySetAttribute) set_attribute = nullptr;
  decltype(&::cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&::cuptiActivityEnable) enable = nullptr;
  decltype(&::cuptiActivityDisable) disable = nullptr;
  decltype(&::cuptiActivityEnableRuntimeApi) enable_runtime_api = nullptr;
  decltype(&::cuptiActivityEnableDriverApi) enable_driver_api = nullptr;
  decltype(&::cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&::cuptiActivityFlushPeriod) flush_period = nullptr;
  decltype(&::cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&::cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&::cuptiActivityPushExternalCorrelationId) push_external_id = nullptr;
  decltype(&::cuptiActivityPopExternalCorrelationId) pop_external_id = nullptr;

  // `library` empty: libcupti of the major version that this was built with, where the loader and
  // CUDA's usual folders have it. The library stays loaded until the program ends, since CUPTI's
  // own threads run in it.
  static Result<CuptiApi> load(const std::string& library);
};

// "CUPTI: ACTION: CUPTI_ERROR_... (number)" and what to do about it. CUPTI's own text is not asked
// for: without a driver it has none.
Error cupti_error(const std::string& action, CUptiResult result);

}  // namespace sluice::cupti
