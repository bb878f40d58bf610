#pragma once
// The places of updates of a run, one a device; core/offload/update_site.h has what one is.
//
// Thread contract: that of UpdateSite.

#include <memory>

#include "base/id_vector.h"
#include "base/ids.h"

namespace sluice::offload {

class UpdateSite;
using UpdateSites = IdVector<DeviceId, std::unique_ptr<UpdateSite>>;

}  // namespace sluice::offload
