// The folder in a build without CUPTI's headers: nothing can be started, and why is said.

#include "profiler/cupti/cupti_recording.h"

namespace sluice::cupti {
namespace {

Error not_built() {
  return make_error(ErrorCode::unsupported,
                    "CUPTI: this program was built without its headers: configure again with "
                    "SLUICE_CUPTI=ON where CUDA 13 is installed (CUDAToolkit_ROOT says where), or "
                    "record without CUPTI");
}

}  // namespace

struct CuptiRecording::Impl {};

CuptiRecording::CuptiRecording(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CuptiRecording::~CuptiRecording() = default;

CuptiRecording::Region::~Region() = default;
CuptiRecording::Region::Region(Region&& other) noexcept
    : recording_(other.recording_), kind_(other.kind_) {}

Result<std::unique_ptr<CuptiRecording>> CuptiRecording::start(record::Recorder&,
                                                              const CuptiOptions&) {
  return not_built();
}
Result<std::unique_ptr<CuptiRecording>> CuptiRecording::start(record::Recorder&, const CuptiApi&,
                                                              const CuptiOptions&) {
  return not_built();
}

// No recording was ever started, so nobody calls these.
CuptiRecording::Region CuptiRecording::step_region(std::int32_t) { return Region(nullptr, 0); }
CuptiRecording::Region CuptiRecording::layer_region(LayerId) { return Region(nullptr, 0); }
Status CuptiRecording::flush() { return not_built(); }
Status CuptiRecording::stop() { return not_built(); }
std::vector<ClockSnapshot> CuptiRecording::clock_snapshots_since(std::size_t) const { return {}; }
std::vector<record::ClockReading> CuptiRecording::clock_readings_since(std::size_t) const {
  return {};
}
std::vector<CuptiCount> CuptiRecording::counts() const { return {}; }
std::string CuptiRecording::last_damage() const { return {}; }

Result<std::string> probe(const std::string&) { return not_built(); }

}  // namespace sluice::cupti
