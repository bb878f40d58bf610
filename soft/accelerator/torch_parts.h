#pragma once
// The parts that open() registers with libtorch, one function a file. Nothing is registered before
// it.
//
// Thread contract: the thread that calls open(), once.

namespace c10 {
struct Allocator;
}

namespace sluice::soft_accelerator {

void register_allocator();        // allocators.cpp
void register_guard();            // guard.cpp
void register_hooks();            // hooks.cpp
void register_kernels();          // kernels.cpp
void register_copies();           // copies.cpp
void register_attention();        // attention.cpp
void register_fallback();         // fallback.cpp
void replace_cpu_allocator();     // placing.cpp
void catch_touches();             // touch.cpp
c10::Allocator& pinned_memory();  // allocators.cpp

}  // namespace sluice::soft_accelerator
