#include "cli/state_argument.h"

#include "storage/state/state_store.h"

namespace sluice::cli {

Result<std::string> state_in(const std::string& given) {
  if (state::StateStore::exists(given)) return given;
  if (state::StateStore::exists(given + "/state")) return given + "/state";
  const std::string of_first = given + "/rank-0/state";
  if (!state::StateStore::exists(of_first)) return given;  // opening it says what it is
  return make_error(ErrorCode::config,
                    "{}: has the states of several ranks; name one of them, as {}", given,
                    of_first);
}

}  // namespace sluice::cli
