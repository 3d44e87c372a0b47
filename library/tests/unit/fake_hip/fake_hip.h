// How a test steers the fake HIP (fake_hip.cpp); found in the loaded library by name.
#pragma once

#include <cstdint>

namespace fake_hip {

/// The version that hipRuntimeGetVersion gives from now on.
using SetVersion = void(int version);  // fake_hip_set_version
/// Whether the GPUs have a large BAR from now on.
using SetLargeBar = void(int large);  // fake_hip_set_large_bar
/// Whether the GPUs have numbers of their own from now on.
using SetNumbered = void(int numbered);  // fake_hip_set_numbered
/// The word with which the CPU's stores to a GPU's memory are flushed.
using FlushWord = uint32_t*();  // fake_hip_flush_word

}  // namespace fake_hip
