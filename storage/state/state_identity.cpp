#include <fmt/format.h>
#include <fmt/ranges.h>

#include "storage/state/state_store.h"

namespace sluice::state {
namespace {

template <typename T>
Status differs(const std::string& directory, std::string_view what, const T& wanted,
               const T& found) {
  return make_error(ErrorCode::config,
                    "{}: is the optimizer state of another run: its {} is {}, wanted is {}; choose "
                    "another state_dir or the settings that it was made with",
                    directory, what, found, wanted);
}

}  // namespace

std::string share_text(const Share& share) {
  if (share.is_whole()) return "all of it";
  return fmt::format("part {} of {} of the parameters, part {} of {} of its state",
                     share.parameter_part + 1, share.parameter_parts, share.state_part + 1,
                     share.state_parts);
}

std::vector<std::string> decoded_names(const StateIdentity& identity, const StoredArrays& stored) {
  if (!stored.is_split()) return identity.variable_names;
  std::vector<std::string> names = {"master_weights"};
  names.insert(names.end(), identity.variable_names.begin() + 2, identity.variable_names.end());
  return names;
}

Status check_identity(const StateIdentity& wanted, const StateIdentity& found,
                      const std::string& directory) {
  if (wanted.model_name != found.model_name)
    return differs(directory, "model", wanted.model_name, found.model_name);
  if (wanted.model_fingerprint != found.model_fingerprint)
    return differs(directory, "fingerprint of tensor names and shapes",
                   fmt::format("{:016x}", wanted.model_fingerprint),
                   fmt::format("{:016x}", found.model_fingerprint));
  if (wanted.optimizer != found.optimizer)
    return differs(directory, "optimizer", wanted.optimizer, found.optimizer);
  if (wanted.variable_names != found.variable_names)
    return differs(directory, "list of variables",
                   fmt::format("{}", fmt::join(wanted.variable_names, ", ")),
                   fmt::format("{}", fmt::join(found.variable_names, ", ")));
  if (wanted.share != found.share)
    return differs(directory, "share of the model", share_text(wanted.share),
                   share_text(found.share));
  return ok_status();
}

Status check_geometry(const Geometry& wanted, const Geometry& found, const std::string& directory) {
  if (wanted.parameter_count != found.parameter_count)
    return differs(directory, "parameter_count", wanted.parameter_count, found.parameter_count);
  if (wanted.subgroup_elements != found.subgroup_elements)
    return differs(directory, "subgroup_elements", wanted.subgroup_elements,
                   found.subgroup_elements);
  if (wanted.variable_count != found.variable_count)
    return differs(directory, "variable_count", wanted.variable_count, found.variable_count);
  if (wanted.codes != found.codes)
    return differs(directory, "state_format", format_text(format_of(wanted.stored())),
                   format_text(format_of(found.stored())));
  if (wanted.device_count != found.device_count)
    return differs(directory, "device_count", wanted.device_count, found.device_count);
  return ok_status();
}

}  // namespace sluice::state
