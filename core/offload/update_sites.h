#pragma once
// The drives of a run and the places of its updates, one a device each; core/csd/drive.h and
// core/offload/update_site.h have what one is.
//
// Thread contract: those of Drive and UpdateSite.

#include <memory>

#include "base/id_vector.h"
#include "base/ids.h"

namespace sluice::csd {
class Drive;
}

namespace sluice::offload {

using Drives = IdVector<DeviceId, std::unique_ptr<csd::Drive>>;

class UpdateSite;
using UpdateSites = IdVector<DeviceId, std::unique_ptr<UpdateSite>>;

}  // namespace sluice::offload
