#include "core/model/model_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "base/program_name.h"

namespace sluice::model {
namespace {

// libgomp reads it when it is loaded, which is with libtorch. Its threads spin while they wait, on
// the very processors that update and stage in the meantime; not to spin at all costs a wake-up at
// every small kernel.
void spin_shortly() {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  ::setenv("OMP_WAIT_POLICY", "passive", 1);
  ::setenv("GOMP_SPINCOUNT", "10000", 1);
}

Error cannot_be_loaded(const std::string& path, const std::string& why) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return make_error(ErrorCode::not_found,
                      "the models cannot be loaded: {} (it is built with libtorch: see README.md)",
                      why);
  }
  // The loader does not tell a refused mapping from a file that is damaged.
  return make_error(
      ErrorCode::memory,
      "the models cannot be loaded: {}: memory was refused, or the library is damaged", why);
}

Result<const ModelLibrary*> load() {
  spin_shortly();
  const std::string path = path_of_library("libsluice_models.so");
  // Global: libtorch's halves and devices' libraries find each other's symbols.
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return cannot_be_loaded(path, ::dlerror());
  using Entry = const ModelLibrary* (*)();
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, kModelLibraryEntry));
  if (entry == nullptr) {
    return make_error(ErrorCode::not_found, "{} is no library of models: it has no {}", path,
                      kModelLibraryEntry);
  }
  return entry();
}

}  // namespace

Result<const ModelLibrary*> load_model_library() {
  static const Result<const ModelLibrary*> library = load();
  return library;
}

}  // namespace sluice::model
