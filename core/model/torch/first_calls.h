#pragma once
// libtorch's libraries decide some things at a first call. The calls here come before threads
// share the decision.
//
// MKL's vector functions (exp, log and the others in ATen/cpu/vml.h) choose their kernels by a
// number for the processor. The process has one such number, and the first call finds it. MKL
// 2024.2 stores the number twice (`mkl_vml_serv_cpu_detect`): as the processor has it, then as its
// tables want it. libtorch calls these functions on all its threads at once. A thread that reads
// the first of the two values takes a wrong entry of a table: a kernel of low accuracy, for its
// part of one call. The first loss of a run then has other bits (docs/decisions.md, 54;
// https://github.com/pytorch/pytorch/issues/188792).
//
// Thread contract: any thread; another thread that calls at the same time waits.

namespace sluice::model {

// Before anything else is computed. Only the first call does something.
void settle_first_calls();

}  // namespace sluice::model
