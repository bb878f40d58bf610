#pragma once
// `sluice._core.SavedTensors`: core/activation/saved_tensors.h for Python.
//
// Thread contract: as there; each call that waits does so without the interpreter's lock.

#include <nanobind/nanobind.h>

namespace sluice::python {

void register_activations(nanobind::module_& module);

}  // namespace sluice::python
