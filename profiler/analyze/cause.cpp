#include "profiler/analyze/cause.h"

namespace sluice::analyze {
namespace {

struct Words {
  std::string_view name;
  std::string_view phrase;
};
constexpr std::array<Words, kCauseCount> kWords = {{
    {"compute", "forward and backward"},
    {"host link", "transfers over the link that devices share"},
    {"read", "reading state and gradients from drives"},
    {"write", "writing state to drives"},
    {"update engine", "the devices' update kernels"},
    {"compression", "selecting the largest gradients"},
    {"processor", "the host's kernels"},
    {"buffers", "waiting for a free buffer"},
    {"commit", "waiting for the commit"},
    {"recorder", "the recording itself"},
    {"other", "nothing that was recorded"},
}};

}  // namespace

std::string_view cause_name(Cause cause) { return kWords[index_of(cause)].name; }
std::string_view cause_phrase(Cause cause) { return kWords[index_of(cause)].phrase; }

}  // namespace sluice::analyze
