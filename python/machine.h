#pragma once
// This machine, as far as `python -m sluice doctor` asks C++ about it (python/sluice/_doctor.py):
// processor, limits of the process, transfers in a folder. Problems are texts, and "" is none: the
// doctor goes on to the next line.
//
// Thread contract: any thread; transfers are timed without the interpreter's lock.

#include <nanobind/nanobind.h>

namespace sluice::python {

void add_machine(nanobind::module_& module);

}  // namespace sluice::python
